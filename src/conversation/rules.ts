/** Which decisions a run follows (design section 1, Rules are pinned): a history replays by the rules that it began with. */

/** Of new runs. Raising it takes a new `patched` in the workflow. */
export const LATEST_RULES = 1;
