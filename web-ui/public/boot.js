// Runs before the first paint, so that a dark page never flashes white.
// The same keys are written by src/lib/prefs.ts.
;(function () {
  var root = document.documentElement
  // The server's own port also answers without the path. The pages need it in the address.
  var base = root.dataset.base
  if ((location.pathname + '/').indexOf(base) !== 0) location.replace(base)
  var theme = 'system'
  var lang = ''
  try {
    theme = localStorage.getItem('carillon.theme') || 'system'
    lang = localStorage.getItem('carillon.lang') || ''
  } catch (e) {
    /* storage may be forbidden: the defaults hold */
  }
  var dark = theme === 'dark' || (theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
  root.dataset.theme = dark ? 'dark' : 'light'
  root.lang = lang || (/^zh/i.test(navigator.language) ? 'zh' : 'en')
  root.style.background = dark ? '#14171c' : '#f6f7f9'
})()
