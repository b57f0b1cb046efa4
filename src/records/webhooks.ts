/** Events of a conversation that programs outside are sent (docs/reference/protocols.md, Webhooks). */

/** `turn.finished`: also one that was interrupted or reached a limit; its stop reason says so. `turn.failed`: one that an error ended. */
export const WEBHOOK_EVENTS = ['turn.finished', 'turn.failed', 'approval.waiting', 'question.waiting'] as const;

export type WebhookEventType = (typeof WEBHOOK_EVENTS)[number];
