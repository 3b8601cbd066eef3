// What a page keeps in the browser from one load to the next.

/** Kept is where: a Storage, or what is like one. */
export type Kept = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** kept is what was written as JSON; null where nothing is, or nothing that can be read: another version of the page may have written it. */
export function kept<T>(where: Kept, key: string): T | null {
  try { return JSON.parse(where.getItem(key) ?? 'null') as T | null; } catch { return null; }
}
