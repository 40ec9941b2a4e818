import { later } from './later'

/** A secret that the server shows once. */
export const SecretDialog = later(() => import('./ShownSecret'))
