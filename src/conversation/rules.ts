/** Which decisions a run follows (design section 1, Rules are pinned): a history replays by the rules that it began with. */

/** Of new runs. Raising it takes a `patched` of its own in the workflow. */
export const LATEST_RULES = 4;
/** From here on a session's end and a full window are consolidated. */
export const CONSOLIDATING_RULES = 2;
/** From here on a hand-over counts all that an unrecorded message carries, not its text alone. */
export const WEIGHING_RULES = 3;
/** From here on a local step that has outlived its workflow task is told of after all else that came with it. */
export const TOLD_LAST_RULES = 4;
