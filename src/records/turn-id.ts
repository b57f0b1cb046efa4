/** `turn_0007` (seed 000, section 20). */
export function turnId(number: number): string {
  return `turn_${String(number).padStart(4, '0')}`;
}

export function turnNumber(id: string): number {
  return Number(/^turn_(\d{4,})$/.exec(id)?.[1] ?? 0);
}
