import type { auth as en } from '../en/auth'

export const auth: typeof en = {
  login: {
    title: '登录',
    username: '用户名',
    password: '密码',
    tenant: '租户',
    tenantHelp: '仅在属于多个租户时需要。',
    otherTenant: '登录到指定租户',
    submit: '登录',
    wrong: '用户名或密码错误。',
    firstHelp: '首次启动？服务器启动时打印过一次 admin 的密码。',
  },
  password: {
    title: '设置新密码',
    firstHelp: '初始密码由服务器生成，请先设置自己的密码。',
    current: '当前密码',
    next: '新密码',
    again: '再次输入新密码',
    rule: '至少 12 个字符，不能与用户名相同，且不易被猜到。',
    short: '至少需要 12 个字符。',
    isUser: '密码不能与用户名相同。',
    differ: '两次输入不一致。',
    wrong: '当前密码错误。',
    submit: '修改密码',
    done: '密码已修改。',
  },
}
