/** A conversation to talk to, the product's or a floor's. */
export interface Talk {
  readonly id: string;
  /** One turn; rejects when it did not end as it should. */
  say(text: string): Promise<void>;
}

export function checkAnswer(text: string, wanted: string): void {
  if (text !== wanted) throw new Error(`a turn answered ${JSON.stringify(text.slice(0, 200))} and not what the scripted model says`);
}
