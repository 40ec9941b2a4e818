import { auth } from './auth'
import { common } from './common'
import { engine } from './engine'
import { forms } from './forms'
import { jobs } from './jobs'
import { ops } from './ops'
import { runs } from './runs'

export const en = { ...common, ...auth, jobs, runs, ...ops, ...engine, ...forms }
export type Texts = typeof en
