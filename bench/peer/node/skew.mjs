// SOLOTICK_SKEW moves the wall clock, by a Go duration in s or ms. It is the first import of a program.
const skewed = /^(-?[\d.]+)(ms|s)$/.exec(process.env.SOLOTICK_SKEW ?? '');
if (skewed) {
  const by = Number(skewed[1]) * (skewed[2] === 's' ? 1000 : 1);
  const Real = Date;
  globalThis.Date = class extends Real {
    constructor(...args) {
      super(...(args.length ? args : [Real.now() + by]));
    }
    static now() {
      return Real.now() + by;
    }
  };
}
