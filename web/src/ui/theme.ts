/** Light, dark, or as the system has it: chosen in this browser, and kept there. */
import { effect, signal } from '@preact/signals';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEPT = 'perdura-theme';

export const theme = signal<Theme>(keptTheme());

effect(() => {
  document.documentElement.style.colorScheme = theme.value === 'system' ? '' : theme.value;
  try {
    localStorage.setItem(KEPT, theme.value);
  } catch {
    // A browser that keeps nothing: it holds for this visit.
  }
});

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system';
}

function keptTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEPT);
    return THEMES.find((one) => one === kept) ?? 'system';
  } catch {
    return 'system';
  }
}
