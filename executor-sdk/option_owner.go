package executor

// OwnedBy says who decides about the job once it exists. Default UntilEdited.
func OwnedBy(o Ownership) JobOption { return jobOption(func(j *job) { j.ownedBy = o }) }

// Ownership is who decides about a job that is declared in code.
type Ownership string

// The kinds of ownership. While two versions of the application run at once,
// the newest one that declares the job counts; see Config.Generation.
const (
	// UntilEdited: the job follows the code until somebody edits it in the
	// console; from then on it is the console's, until somebody gives it back to
	// the code there. A new name is an edit too: the job is not made again under
	// the name that the code has for it. A job that somebody deletes stays deleted,
	// edited before or not, whatever later versions declare, until somebody makes a
	// job of this name in the console; that one can be given to the code.
	UntilEdited Ownership = ""
	// ByCode: the job follows the code. The console can pause and run it, and
	// change of its labels, alerts and owner what the code does not say; all else is
	// refused, and it says where the job is declared. It cannot be deleted while it
	// is declared. If it was deleted meanwhile, it comes back with its declaration. The
	// job loses an earlier edit, and has it again with a version that does not own it.
	ByCode Ownership = "code"
	// ByConsole: the code makes the job the first time, and never touches it
	// again, also not when somebody has deleted it.
	ByConsole Ownership = "console"
	// ProposeOnly: what the code declares is shown in the console beside what
	// is, and happens when somebody accepts it.
	ProposeOnly Ownership = "propose"
)

// WhenRemoved says what becomes of the job when no running version of the
// application declares it any more. Default: ByCode pauses it, all others keep
// it. A job that was edited in the console is kept in any case, unless it is
// ByCode.
func WhenRemoved(p RemovalPolicy) JobOption { return jobOption(func(j *job) { j.removal = p }) }

// RemovalPolicy is what becomes of a job that is not declared any more.
type RemovalPolicy string

// The policies. A job that was paused for this goes on when it is declared
// again, unless somebody has paused it too. DeleteRemoved keeps a job that
// somebody has paused: it is still paused when it is declared again. All else
// that was changed in the console of a job that it deletes, for example labels
// and alerts that the code does not say, is lost.
const (
	KeepRemoved   RemovalPolicy = "keep"
	PauseRemoved  RemovalPolicy = "pause"
	DeleteRemoved RemovalPolicy = "delete"
)
