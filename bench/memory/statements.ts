/** What is planted in a conversation and looked for in prompts: sentences of one form, which no other text of the bench has. */

/** `the <subject> is <value>`: two words, and a name with a number that no other statement has. */
export interface Statement {
  readonly subject: string;
  readonly value: string;
}

const STATEMENT = /\bthe ([a-z]+ [a-z]+) is (?:now )?([A-Z][a-z]+-\d+)/g;
const QUESTION = /what is the ([a-z]+ [a-z]+)\?/;

const PATH_QUESTION = /was (\S+) edited, or only read\?/;

export const GOAL = 'current goal';

export function sentence({ subject, value }: Statement): string {
  return `the ${subject} is ${value}`;
}

/** In the order of the text. */
export function statementsIn(text: string): Statement[] {
  return [...text.matchAll(STATEMENT)].flatMap(([, subject, value]) =>
    subject === undefined || value === undefined ? [] : [{ subject, value }],
  );
}

export function question(subject: string): string {
  return `Remind me: what is the ${subject}?`;
}

/** Whether work has changed a file. */
export function changed(path: string): string {
  return `Remind me: was ${path} edited, or only read?`;
}

export function pathAskedIn(text: string): string | undefined {
  return PATH_QUESTION.exec(text)?.[1];
}

export function subjectAskedIn(text: string): string | undefined {
  return QUESTION.exec(text)?.[1];
}

/** Of each subject the last: how a reader takes them. */
export function newest(statements: readonly Statement[]): Map<string, string> {
  return new Map(statements.map(({ subject, value }) => [subject, value]));
}
