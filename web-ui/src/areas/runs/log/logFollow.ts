// The follow toggle of the live log as a pure reducer: following keeps the end
// in view; scrolling up stops it and counts what arrives meanwhile; going back
// to the end, or the button, resumes it.
export interface FollowState {
  following: boolean
  /** Lines which arrived since following stopped. */
  unseen: number
}

export type FollowEvent =
  | { type: 'lines'; added: number }
  | { type: 'scroll'; atEnd: boolean; byUser: boolean }
  | { type: 'toggle' }
  | { type: 'jump' }

export function follow(state: FollowState, event: FollowEvent): FollowState {
  switch (event.type) {
    case 'lines':
      return state.following || event.added === 0 ? state : { ...state, unseen: state.unseen + event.added }
    case 'scroll':
      // Our own scrolling to the end passes through positions above it; only
      // the person's scrolling says that they want to stay there.
      if (event.atEnd) return state.following && state.unseen === 0 ? state : { following: true, unseen: 0 }
      return event.byUser && state.following ? { following: false, unseen: 0 } : state
    case 'toggle':
      return state.following ? { following: false, unseen: 0 } : { following: true, unseen: 0 }
    case 'jump':
      return { following: true, unseen: 0 }
  }
}

/** A viewport counts as at its end within this distance, in CSS pixels. */
export const END_SLACK_PX = 24

export function isAtEnd(box: { scrollTop: number; scrollHeight: number; clientHeight: number }): boolean {
  return box.scrollHeight - box.scrollTop - box.clientHeight <= END_SLACK_PX
}

/** "#L120" → 120; anything else → undefined. */
export function lineOfHash(hash: string): number | undefined {
  const match = /^#?L(\d{1,9})$/.exec(hash)
  return match ? Number(match[1]) : undefined
}
