/** The face of the room: which device holds which rows, decided and simulated. */

export { HotCurve } from './hot-curve.ts';
export type { PlacementPlan } from './island-plan.ts';
export { devicesMax, linksOf, type RowCosts } from './links.ts';
export { type DeviceLoad, loadsOf } from './loads.ts';
export { type PlanRequest, planPlacement } from './plan.ts';
export { samplersAmong } from './samplers.ts';
export {
  holdingsOf,
  type LinkLayout,
  linkLayouts,
  type Simulated,
  type SimulatedLayout,
  simulatePlacements,
} from './simulate.ts';
export { type Tiers, tiersOf } from './tiers.ts';
