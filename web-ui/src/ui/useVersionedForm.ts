// A form of something that others may edit meanwhile: the draft stands on the
// version that was read once, and a save over a newer one is a choice.
import { Form, type FormInstance, type FormProps } from 'antd'
import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { isApiError } from '../api/problem'
import { complainAt } from './complain'
import { useShowError } from './hooks'
import { message } from './notices'
import { useLeaveGuard } from './useLeaveGuard'

interface Options<T, F> {
  stored: T | undefined
  initial: () => Partial<F>
  /** version: the one that is replaced; it is not needed for a new one. */
  write: (fields: F, version: number) => Promise<T>
  read: (id: string) => Promise<T>
  /** What is said of it; connections.saved unless given. */
  said?: (saved: T) => string
  /** Where complaints about a field belong; see complainAt. */
  place?: Parameters<typeof complainAt>[2]
  done: (saved: T) => void
}

interface VersionedForm<T, F> {
  form: FormInstance<F>
  props: FormProps<F>
  busy: boolean
  /** Somebody else's version, when one came between. */
  theirs: T | undefined
  save: (version: number) => Promise<void>
}

type Versioned = { id: string; name: string; version: number }

export function useVersionedForm<T extends Versioned, F>({ stored, initial, write, read, said, place, done }: Options<T, F>): VersionedForm<T, F> {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<F>()
  const [initialValues] = useState(initial)
  const [busy, setBusy] = useState(false)
  const [theirs, setTheirs] = useState<T>()
  const left = useRef(false) // saved: there is nothing to lose
  useLeaveGuard(() => !left.current && JSON.stringify(form.getFieldsValue(true)) !== JSON.stringify(initialValues))
  const save = async (version: number) => {
    setBusy(true)
    try {
      const saved = await write(form.getFieldsValue(true) as F, version)
      left.current = true
      message.success(said?.(saved) ?? t('connections.saved', { name: saved.name }))
      done(saved)
    } catch (err) {
      if (stored && isApiError(err, 'revision_mismatch')) setTheirs(await read(stored.id).catch(() => undefined))
      else if (!complainAt(form, err, place)) showError(err)
      setBusy(false)
    }
  }
  return {
    form,
    props: { form, layout: 'vertical', initialValues: initialValues as object, scrollToFirstError: { focus: true }, onFinish: () => void save(stored?.version ?? 0) },
    busy,
    theirs,
    save,
  }
}
