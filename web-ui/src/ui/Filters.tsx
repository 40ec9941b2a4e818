// The filters of a list. On a phone they stand in a sheet behind one button, and those that are set
// stand as chips above the list.
import { CloseOutlined, FilterOutlined } from '@ant-design/icons'
import { Button } from 'antd'
import { useLayoutEffect, useRef, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useNarrow } from './hooks'

/** A filter that is set. */
export interface FilterChip {
  key: string
  text: ReactNode
  help?: string
  /** It has no control of its own: the chip stands on wide screens too. */
  alone?: boolean
  onRemove: () => void
}

interface Props {
  label: string
  /** The search field, always in view. */
  search?: ReactNode
  children?: ReactNode
  chips?: (FilterChip | false | undefined | '')[]
  onClear?: () => void
}

export function Filters({ label, search, children, chips = [], onClear }: Props) {
  const narrow = useNarrow()
  const set = chips.filter((one): one is FilterChip => Boolean(one))
  const shown = narrow ? set : set.filter((one) => one.alone)
  return (
    <div className="filters" role="search" aria-label={label}>
      {search}
      {children && (narrow ? <Sheet count={set.length}>{children}</Sheet> : children)}
      {set.length > 0 ? (
        <span className="chips">
          {shown.map((one) => (
            <Chip key={one.key} chip={one} />
          ))}
          {onClear && <ClearButton onClear={onClear} />}
        </span>
      ) : (
        !narrow && <ClearRoom />
      )}
    </div>
  )
}

function Chip({ chip }: { chip: FilterChip }) {
  const { t } = useTranslation()
  return (
    <button type="button" className="chip" title={chip.help} onClick={chip.onRemove}>
      <span className="clip">{chip.text}</span>
      <CloseOutlined aria-hidden />
      <span className="sr-only">{t('list.removeFilter')}</span>
    </button>
  )
}

function ClearButton({ onClear }: { onClear: () => void }) {
  const { t } = useTranslation()
  return (
    <Button type="link" onClick={onClear}>
      {t('action.clearFilters')}
    </Button>
  )
}

/** Its place while no filter is set, so that the list does not move when one is. */
function ClearRoom() {
  const { t } = useTranslation()
  return (
    <span className="chips rests" aria-hidden="true">
      <Button type="link" disabled tabIndex={-1}>
        {t('action.clearFilters')}
      </Button>
    </span>
  )
}

function Sheet({ count, children }: { count: number; children: ReactNode }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button icon={<FilterOutlined />} aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {count > 0 ? t('list.filtersSet', { count }) : t('list.filters')}
      </Button>
      {open && <SheetDialog onClose={() => setOpen(false)}>{children}</SheetDialog>}
    </>
  )
}

/** The browser's own dialog: it keeps the focus, and gives it back when it is closed before it leaves the page. */
function SheetDialog({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  const { t } = useTranslation()
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const { current } = dialog
    current?.showModal()
    return () => current?.close()
  }, [])
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions, jsx-a11y/click-events-have-key-events -- a click beside it; Escape does the same
    <dialog ref={dialog} className="sheet" aria-label={t('list.filters')} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <div className="sheet-body">
        <h2>{t('list.filters')}</h2>
        {children}
        <Button type="primary" block onClick={onClose}>
          {t('action.done')}
        </Button>
      </div>
    </dialog>
  )
}
