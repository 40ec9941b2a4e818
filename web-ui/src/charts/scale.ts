// Scales and ticks of the charts. Pure, so that they are tested without a browser.
import { formatInstant, wallToInstant } from '../lib/time'

/** From a value to a place in pixels. */
export type Scale = (value: number) => number

export function linear(d0: number, d1: number, r0: number, r1: number): Scale {
  const span = d1 - d0 || 1
  return (value) => r0 + ((value - d0) / span) * (r1 - r0)
}

/** Logarithmic; values below d0 stand at its place. */
export function logarithmic(d0: number, d1: number, r0: number, r1: number): Scale {
  const scale = linear(Math.log(d0), Math.log(d1), r0, r1)
  return (value) => scale(Math.log(Math.max(d0, value)))
}

/** Round numbers from 0 to max, about n beside 0. */
export function countTicks(max: number, n: number): number[] {
  if (max <= 0 || n < 1) return [0]
  const rough = max / n
  const power = 10 ** Math.floor(Math.log10(rough))
  const steps = [1, 2, 5, 10].map((one) => one * power)
  // A step above max would leave 0 alone.
  const step = Math.max(1, steps.find((one) => one >= rough && one <= max) ?? steps.findLast((one) => one <= max) ?? max)
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, i) => i * step)
}

const S = 1_000
const M = 60 * S
const H = 60 * M
const D = 24 * H

const DURATIONS = [1, 10, 100, S, 10 * S, M, 10 * M, H, 6 * H, D, 7 * D, 30 * D, 365 * D]

/** Bounds of a logarithmic axis of durations: those of the list that enclose min and max. */
export function durationDomain(min: number, max: number): [number, number] {
  const low = DURATIONS.findLast((one) => one <= Math.max(1, min)) ?? 1
  const high = DURATIONS.find((one) => one >= max && one > low) ?? Math.max(max, low * 10)
  return [low, high]
}

/** Durations of the axis, so many that each has its room in pixels. */
export function durationTicks(low: number, high: number, height: number, room = 22): number[] {
  const all = DURATIONS.filter((one) => one >= low && one <= high)
  const every = Math.max(1, Math.ceil((all.length * room) / Math.max(room, height)))
  return all.filter((_, i) => i % every === 0)
}

export interface TimeTick {
  at: number
  label: string
}

const TIME_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, S, 2 * S, 5 * S, 10 * S, 15 * S, 30 * S, M, 2 * M, 5 * M, 10 * M, 15 * M, 30 * M, H, 3 * H, 6 * H, 12 * H, D, 2 * D, 7 * D, 14 * D, 30 * D, 90 * D, 365 * D]
/** Pixels of a character of a label, and the least space between labels. */
export const CHAR_PX = 6.2
const SPACE_PX = 8

function labelOf(at: number, step: number, zone: string): string {
  const text = formatInstant(at, zone, step < S)
  if (step >= D || (step >= M && text.slice(11, 16) === '00:00')) return text.slice(5, 10)
  if (step >= M) return text.slice(11, 16)
  return step >= S ? text.slice(11, 19) : text.slice(14)
}

const roomOf = (step: number) => (step >= M ? 5 : step >= S ? 8 : 9) * CHAR_PX + SPACE_PX

/** Ticks at round wall times of the zone, at most so many that their labels do not touch. The first of a day has its date. */
export function timeTicks(from: number, to: number, width: number, zone: string, least = 0): TimeTick[] {
  const span = Math.max(1, to - from)
  const step = TIME_STEPS.find((one) => one >= least && (width * one) / span >= roomOf(one)) ?? span
  const ticks = step < H ? evenly(from, to, step) : step < D ? hours(from, to, step / H, zone) : days(from, to, Math.round(step / D), zone)
  return ticks.map((at) => ({ at, label: labelOf(at, step, zone) }))
}

/** Ticks at round lengths of time before and after zero, with the label of each. */
export function lengthTicks(from: number, to: number, width: number, zero: number, label: (ms: number) => string): TimeTick[] {
  const room = 8 * CHAR_PX + SPACE_PX
  const step = TIME_STEPS.find((one) => (width * one) / Math.max(1, to - from) >= room) ?? Math.max(1, to - from)
  return evenly(from - zero, to - zero, step).map((ms) => ({ at: zero + ms, label: label(ms) }))
}

function evenly(from: number, to: number, step: number): number[] {
  const out: number[] = []
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) out.push(at)
  return out
}

/** Days of the zone that touch the span, as "2026-11-21". */
function dates(from: number, to: number, zone: string): string[] {
  const out: string[] = []
  const last = formatInstant(to, zone).slice(0, 10)
  for (let day = formatInstant(from, zone).slice(0, 10); day <= last; day = new Date(Date.parse(`${day}T00:00:00Z`) + D).toISOString().slice(0, 10)) out.push(day)
  return out
}

const wall = (day: string, hour: number, zone: string) => Date.parse(wallToInstant(`${day}T${String(hour).padStart(2, '0')}:00:00`, zone))

/** An hour that a change of the clock leaves out has no tick. */
function hours(from: number, to: number, every: number, zone: string): number[] {
  return dates(from, to, zone).flatMap((day) => {
    const out: number[] = []
    for (let hour = 0; hour < 24; hour += every) {
      const at = wall(day, hour, zone)
      if (at >= from && at <= to && Number(formatInstant(at, zone).slice(11, 13)) === hour) out.push(at)
    }
    return out
  })
}

function days(from: number, to: number, every: number, zone: string): number[] {
  return dates(from, to, zone)
    .map((day) => wall(day, 0, zone))
    .filter((at) => at >= from && at <= to && Math.round(at / D) % every === 0)
}
