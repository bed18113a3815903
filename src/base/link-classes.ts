/** What joins devices that read each other's memory, and what they read over it. */

/** Slower ones last. HOST_BUS: peers whose copies cross the bridge between host memories. */
export const linkClasses = ['NVLINK', 'PCIE', 'HOST_BUS'] as const;
export type LinkClass = (typeof linkClasses)[number];

/** GB/s over each class of links, and of the host's memory. A class without one is not used. */
export type LinkRates = Readonly<{ HOST: number } & Partial<Record<LinkClass, number>>>;
