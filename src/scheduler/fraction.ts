/** Non-negative fractions, compared exactly: doubles turn K = 3 into 2.9999999999999996. */
export interface Fraction {
  readonly numerator: bigint;
  /** Positive. */
  readonly denominator: bigint;
}

export function fraction(numerator: bigint, denominator = 1n): Fraction {
  return { numerator, denominator };
}

export function isLess(left: Fraction, right: Fraction): boolean {
  return left.numerator * right.denominator < right.numerator * left.denominator;
}

export function sum(left: Fraction, right: Fraction): Fraction {
  return fraction(
    left.numerator * right.denominator + right.numerator * left.denominator,
    left.denominator * right.denominator,
  );
}

export function larger(first: Fraction, ...others: readonly Fraction[]): Fraction {
  return others.reduce((largest, other) => (isLess(largest, other) ? other : largest), first);
}

export function roundUp({ numerator, denominator }: Fraction): number {
  return Number((numerator + denominator - 1n) / denominator);
}
