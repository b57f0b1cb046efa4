/** What a rewind has cut out: it can be looked at, and another conversation can begin with it. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { keep } from '../../address.js';
import type { Entry } from '../../api/entries.js';
import { request } from '../../api/request.js';
import type { Branch, Opened } from '../../conversation/open.js';
import { toTurns } from '../../conversation/turns.js';
import { Icon } from '../../ui/icon.js';
import { Problem } from '../../ui/problem.js';
import { ago, plural } from '../../ui/words.js';
import { TurnView } from './turn-view.js';

export function BranchTurns({ opened, branch }: { readonly opened: Opened; readonly branch: Branch }): JSX.Element {
  const entries = useSignal<readonly Entry[] | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  useEffect(() => {
    entries.value = undefined;
    request('get', '/v1/conversations/{id}/entries', { path: { id: opened.id }, query: { branch: branch.branch, limit: 1_000 } }).then(
      (read) => (entries.value = read.entries as unknown as Entry[]),
      (problem: unknown) => (error.value = problem),
    );
  }, [branch.branch]);
  const siblings = opened.branches.value.filter(({ after }) => after === branch.after);
  const at = siblings.findIndex((one) => one.branch === branch.branch);
  const to = (index: number): void =>
    keep({ branch: index < siblings.length ? String(siblings[index]?.branch ?? '') : undefined }, { push: true });
  return (
    <div class="virtual" tabIndex={0}>
      <p class="note warn branch-note" role="status">
        <Icon name="branch" size={15} />
        <span class="grow">
          A branch of {plural(branch.turns.length, 'turn')}, cut {ago(branch.at) === 'now' ? 'just now' : `${ago(branch.at)} ago`}. Forking
          goes on with it.
        </span>
        <span class="branch-switch">
          <button
            type="button"
            class="button bare square tight"
            aria-label="The answer before this one"
            disabled={at <= 0}
            onClick={() => to(at - 1)}
          >
            <Icon name="back" size={14} />
          </button>
          <span class="num">
            {at + 1} of {siblings.length + 1}
          </span>
          <button type="button" class="button bare square tight" aria-label="The answer after this one" onClick={() => to(at + 1)}>
            <Icon name="next" size={14} />
          </button>
        </span>
      </p>
      {error.value !== undefined && <Problem error={error.value} />}
      {toTurns(entries.value ?? []).map((turn) => (
        <TurnView key={turn.id} turn={turn} opened={opened} isLast={false} isBranch />
      ))}
    </div>
  );
}
