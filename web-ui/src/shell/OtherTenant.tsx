// The page of an address in another tenant. It offers the switch.
import { SwapOutlined } from '@ant-design/icons'
import { Link } from '@tanstack/react-router'
import { Button } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../api/endpoints'
import { queries, queryClient } from '../api/queries'
import { useQuery } from '../api/useQuery'
import { useShowError } from '../ui/hooks'
import { Blank, PageSkeleton } from '../ui/States'

export default function OtherTenant({ asked, here }: { asked: string; here: string }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const me = useQuery(queries.me())
  const [busy, setBusy] = useState(false)
  if (!me.data) return <PageSkeleton />
  const tenant = me.data.tenants?.find((one) => one.name === asked)
  const go = async (id: string) => {
    setBusy(true)
    try {
      await api.switchTenant(id)
      queryClient.clear()
    } catch (err) {
      setBusy(false)
      showError(err)
    }
  }
  return (
    <Blank icon={<SwapOutlined />} title={t('otherTenant.title', { asked })} help={t(tenant ? 'otherTenant.help' : 'otherTenant.noMember', { asked, here })}>
      {tenant && (
        <Button type="primary" loading={busy} onClick={() => void go(tenant.id)}>
          {t('otherTenant.go', { asked })}
        </Button>
      )}
      <Link to="/overview">{t('otherTenant.stay', { here })}</Link>
    </Blank>
  )
}
