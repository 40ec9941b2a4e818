import type { Texts } from '../en'
import { alerts } from './alerts'
import { auth } from './auth'
import { charts, compare, errorGroups, gallery } from './charts'
import { common } from './common'
import { connections } from './connections'
import { engine } from './engine'
import { forms } from './forms'
import { jobs } from './jobs'
import { ops } from './ops'
import { runs } from './runs'
import { said } from './said'

export const zh: Texts = { ...common, ...auth, alerts, charts, compare, errorGroups, gallery, jobs, runs, said, ...ops, ...engine, ...forms, ...connections }
