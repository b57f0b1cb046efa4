/** The page's own pictures, drawn on a grid of 20. */
import type { JSX } from 'preact';

const PATHS = {
  chat: 'M3.5 5.5a2 2 0 0 1 2-2h9a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2H9l-4 3v-3a2 2 0 0 1-1.5-2z',
  inbox: 'M3.5 11.5 5.6 4.6a1 1 0 0 1 1-.7h6.8a1 1 0 0 1 1 .7l2.1 6.9v3.6a1 1 0 0 1-1 1h-11a1 1 0 0 1-1-1zM3.5 11.5h3.7l1 2h3.6l1-2h3.7',
  fleet: 'M3.5 3.5h5v5h-5zM11.5 3.5h5v5h-5zM3.5 11.5h5v5h-5zM11.5 11.5h5v5h-5z',
  agents: 'M10 9.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4 16.5c.6-2.9 3-4.5 6-4.5s5.400 1.600 6 4.500',
  timeline: 'M3.500 5.500h6M7.500 10h7M11.500 14.500h5',
  context: 'M3.500 4h13M3.500 8h13M3.500 12h8M3.500 16h5',
  memory: 'M5 3.500h9.500v13H5zM5 3.500v13M8 7h4M8 10h4',
  stepper: 'M5 4v12M8.500 4.500 15.500 10l-7 5.500z',
  plus: 'M10 4v12M4 10h12',
  search: 'M9 14a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM12.800 12.800 16.500 16.500',
  send: 'M10 16V4.500M5 9.500l5-5 5 5',
  stop: 'M5.500 5.500h9v9h-9z',
  close: 'M5 5l10 10M15 5 5 15',
  back: 'M12.500 4.500 7 10l5.500 5.500',
  next: 'M7.500 4.500 13 10l-5.500 5.500',
  down: 'M4.500 7.500 10 13l5.500-5.500',
  check: 'M4.500 10.500 8.500 14.500 15.500 6',
  retry: 'M15.800 8A6 6 0 1 0 16 11.500M16 4v4h-4',
  edit: 'M4 16l.700-3.200 8.300-8.300 2.500 2.500-8.300 8.300z',
  fork: 'M6 3.500v13M6 11c0-3.500 8-1.500 8-5.500M6 3.500 4 5.500M6 3.500l2 2M14 3.500v2',
  copy: 'M7 7h9v9H7zM4 13V4h9',
  attach: 'M15.500 9.500 10 15a3.200 3.200 0 0 1-4.500-4.500l6-6a2.100 2.100 0 0 1 3 3l-6 6a1 1 0 0 1-1.500-1.500l5-5',
  tool: 'M12.500 3.700a4 4 0 0 0-3.700 5.500L3.700 14.300a1.400 1.400 0 0 0 2 2l5.100-5.100a4 4 0 0 0 5.500-3.700l-2.300 1.200-2.200-2.200z',
  ask: 'M7.200 7.500a2.800 2.800 0 1 1 4 2.500c-.800.400-1.200 1-1.200 2M10 15.500v.100',
  warn: 'M10 4 17 16H3zM10 8.500v3.500M10 14.200v.100',
  wait: 'M10 16.500a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13zM10 6.500V10l2.500 1.800',
  busy: 'M10 3.500a6.500 6.500 0 1 1-6.500 6.500',
  out: 'M8 3.500H4.500v13H8M9 10h7.500M13.500 7l3 3-3 3',
  theme: 'M10 16.500a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13zM10 3.500v13M10 7h4.500M10 10h6M10 13h4.500',
  more: 'M5 10h.100M10 10h.100M15 10h.100',
  branch: 'M4 10h5M9 10c3 0 2-5 7-5M9 10c3 0 2 5 7 5',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({
  name,
  size = 18,
  class: more,
}: {
  readonly name: IconName;
  readonly size?: number;
  readonly class?: string;
}): JSX.Element {
  return (
    <svg
      class={more}
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      stroke-width={name === 'more' ? 2.4 : 1.5}
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Mark({ size = 26 }: { readonly size?: number }): JSX.Element {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" fill="none" aria-hidden="true">
      <path
        d="M10 27V6h8a6.500 6.500 0 0 1 0 13h-8"
        stroke="currentColor"
        stroke-width="3.500"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
