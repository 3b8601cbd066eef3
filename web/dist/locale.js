let locale = "en";
let numbers = new Intl.NumberFormat(locale);
const inManner = () => locale;
function write(to) {
  locale = to;
  numbers = new Intl.NumberFormat(to);
}
const number = (n) => numbers.format(n);
function counting(language) {
  const rules = new Intl.PluralRules(language);
  return (n, forms) => `${number(n)} ${forms[rules.select(n)] ?? forms.other}`;
}

export { counting, inManner, number, write };
