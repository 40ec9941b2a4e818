// The visual language of the component library. Colours are chosen for
// contrast (WCAG AA, 4.5:1 for text) where the library's defaults miss it:
// links, descriptions, placeholders, primary buttons.
import { theme, type ThemeConfig } from 'antd'

const font =
  'system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", sans-serif'
export const monoFont = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", "Noto Sans Mono CJK SC", monospace'

const shared = {
  fontFamily: font,
  fontFamilyCode: monoFont,
  fontSize: 13,
  borderRadius: 6,
  controlHeight: 32,
  wireframe: false,
}

const components: ThemeConfig['components'] = { Form: { itemMarginBottom: 16 } }

const light: ThemeConfig = {
  components,
  algorithm: theme.defaultAlgorithm,
  token: {
    ...shared,
    colorPrimary: '#0b57d0',
    // The library's own are lighter than what they stand on allows.
    colorPrimaryHover: '#0a4cb8',
    colorErrorHover: '#a40e26',
    colorLink: '#0b57d0',
    colorLinkHover: '#0a4cb8',
    colorLinkActive: '#0a4cb8',
    colorError: '#cf222e',
    colorSuccess: '#1a7f37',
    colorWarning: '#9a4a00',
    // What the library makes of so dark a colour is brown, on which links cannot be read.
    colorWarningBg: '#fff8e1',
    colorWarningBorder: '#d9a441',
    colorText: '#1f2328',
    colorTextSecondary: '#4c545e',
    colorTextTertiary: '#57606a',
    colorTextQuaternary: '#646c76',
    colorTextDescription: '#57606a',
    colorTextPlaceholder: '#646c76',
    colorTextDisabled: '#6a727c',
    colorBorder: '#c6ccd4',
    colorBgLayout: '#f6f7f9',
  },
}

const dark: ThemeConfig = {
  components,
  algorithm: theme.darkAlgorithm,
  token: {
    ...shared,
    colorPrimary: '#2f72e4',
    // The library's own is too light for white text.
    colorPrimaryHover: '#2565d3',
    colorLink: '#79b8ff',
    colorLinkHover: '#9ccbff',
    colorLinkActive: '#9ccbff',
    colorError: '#f0524d',
    colorSuccess: '#56d364',
    colorWarning: '#e3b341',
    colorBgBase: '#14171c',
    colorBgContainer: '#1b1f26',
    colorBgElevated: '#222730',
    colorBgLayout: '#14171c',
    colorText: '#e6e9ee',
    colorTextSecondary: '#b9c0cb',
    colorTextTertiary: '#a8b0bd',
    colorTextQuaternary: '#98a1af',
    colorTextDescription: '#a8b0bd',
    colorTextPlaceholder: '#98a1af',
    colorTextDisabled: '#8b94a2',
    colorBorder: '#3a414d',
  },
}

/** `calm` switches the library's motion off. */
export function antdTheme(mode: 'light' | 'dark', calm: boolean): ThemeConfig {
  const base = mode === 'dark' ? dark : light
  return calm ? { ...base, token: { ...base.token, motion: false } } : base
}
