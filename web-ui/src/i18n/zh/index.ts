import type { Texts } from '../en'
import { auth } from './auth'
import { common } from './common'
import { engine } from './engine'
import { forms } from './forms'
import { jobs } from './jobs'
import { ops } from './ops'
import { runs } from './runs'

export const zh: Texts = { ...common, ...auth, jobs, runs, ...ops, ...engine, ...forms }
