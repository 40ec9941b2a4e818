import type { CallbackPolicyWrite } from '../../api/types'
import { refreshScripts, scriptApi } from './scripts'

/** Writes the part about callbacks; what agents may do stays as it is now. */
export async function setCallbacks(callbacks: CallbackPolicyWrite, note: string) {
  const { languages, http } = await scriptApi.scriptPolicy()
  await scriptApi.setScriptPolicy({ languages, http, callbacks, note })
  refreshScripts()
}
