// The manner in which numbers are written, and how many of a thing there are said to be.

let locale = 'en';
let numbers = new Intl.NumberFormat(locale); // making one takes longer than drawing a section

/** inManner is the locale that numbers, prices and times are written in. */
export const inManner = (): string => locale;

/** write says which it is from now on. */
export function write(to: string): void {
  locale = to;
  numbers = new Intl.NumberFormat(to);
}

/** number writes a whole number. */
export const number = (n: number): string => numbers.format(n);

/** Forms are those of a noun: a language has some of them, and always other. */
export type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

/** counting makes what says a number with its noun in a language. */
export function counting(language: string): (n: number, forms: Forms) => string {
  const rules = new Intl.PluralRules(language);
  return (n, forms) => `${number(n)} ${forms[rules.select(n)] ?? forms.other}`;
}
