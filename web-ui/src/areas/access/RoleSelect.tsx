import { Select } from 'antd'
import { useTranslation } from 'react-i18next'
import type { Role } from '../../api/types'

const ROLES: Role[] = ['viewer', 'operator', 'editor', 'scripter', 'admin']

interface Props {
  value?: Role
  onChange?: (role: Role) => void
  id?: string
  label?: string
  disabled?: boolean
}

export function RoleSelect({ value, onChange, id, label, disabled }: Props) {
  const { t } = useTranslation()
  return (
    <Select
      id={id}
      aria-label={label}
      className="w-150-least"
      popupMatchSelectWidth={false}
      value={value}
      onChange={onChange}
      disabled={disabled}
      options={ROLES.map((role) => ({ value: role, label: t(`role.${role}`) }))}
      optionRender={(option) => (
        <div>
          {option.label}
          <div className="muted small">{t(`role.${option.value as Role}Help`)}</div>
        </div>
      )}
    />
  )
}
