package cli

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/login"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// The exit codes of package documentation.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitDenied      = 4
	ExitConflict    = 5
	ExitTimedOut    = 124
	ExitInterrupted = 130
)

// exitError ends the program with a code. A nil Err prints nothing: what is to
// be said has been said.
type exitError struct {
	Code int
	Err  error
}

func (e *exitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *exitError) Unwrap() error { return e.Err }

// Fail ends the program with a code. A nil error prints nothing: what is to be
// said has been said.
func Fail(code int, err error) error { return &exitError{Code: code, Err: err} }

// Usagef is the error of a command line that is wrong.
func Usagef(format string, args ...any) error {
	return &exitError{ExitUsage, fmt.Errorf(format, args...)}
}

// Execute runs the root command, tells about its error on stderr and returns
// the exit code.
func Execute(ctx context.Context, root *cobra.Command, stderr io.Writer) int {
	started := false // mistakes before that are mistakes of usage
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SilenceErrors, root.SilenceUsage = true, true
	plainArguments(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	code := CodeFor(cmd, err)
	if !started {
		code = ExitUsage
	}
	if ctx.Err() != nil && code == ExitFailed {
		code = ExitInterrupted
	}
	if e, ok := errors.AsType[*exitError](err); ok && e.Err == nil {
		return code
	}
	Tell(stderr, cmd, err, code)
	return code
}

// CodeOf is the one table from errors to exit codes.
func CodeOf(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.Code
	}
	if _, ok := errors.AsType[*login.NotLoggedInError](err); ok {
		return ExitDenied
	}
	p, ok := errors.AsType[*apiclient.Problem](err)
	if !ok {
		return ExitFailed
	}
	switch {
	case p.Code == apiclient.ProblemCodeWaitTimedOut:
		return ExitTimedOut
	case p.Status == http.StatusNotFound && p.Code != "":
		return ExitNotFound
	case p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden:
		return ExitDenied
	case p.Status == http.StatusConflict || p.Status == http.StatusPreconditionFailed:
		return ExitConflict
	}
	return ExitFailed
}

// Tell says what, why, and what to do next.
func Tell(w io.Writer, cmd *cobra.Command, err error, code int) {
	var b strings.Builder
	text := err.Error()
	p, isProblem := errors.AsType[*apiclient.Problem](err)
	if isProblem {
		said := inFlags(cmd, p)
		text = strings.Replace(text, p.Error(), said.Error(), 1)
		p = said
	}
	fmt.Fprintf(&b, "Error: %s\n", output.CleanLines(text))
	if isProblem {
		tellProblem(&b, p)
	}
	if next := nextStep(err, cmd); next != "" {
		b.WriteString(next + "\n")
	}
	if code == ExitUsage {
		fmt.Fprintf(&b, "See: %s --help\n", cmd.CommandPath())
	}
	_, _ = io.WriteString(w, b.String()) // nowhere left to complain
}

// tellProblem lists wrong fields; a cron expression gets a caret.
func tellProblem(b *strings.Builder, p *apiclient.Problem) {
	for _, item := range p.Errors {
		if len(p.Errors) > 1 || !strings.Contains(p.Detail, item.Message) {
			fmt.Fprintf(b, "  %s: %s\n", output.Clean(item.Location), output.Clean(item.Message))
		}
		var text string
		isText := json.Unmarshal(item.Value, &text) == nil
		if at := item.Position; at != nil && isText && text != "" && *at >= 0 && *at <= int64(len(text)) {
			b.WriteString(caret(text, int(*at), int(max(item.Length, 1))))
		}
		if item.Hint != "" {
			fmt.Fprintf(b, "  hint: %s\n", output.Clean(item.Hint))
		}
	}
	if p.Instance != "" && p.Status >= http.StatusInternalServerError {
		fmt.Fprintf(b, "  request id for the server's log: %s\n", output.Clean(p.Instance))
	}
}

// caret shows text with marks below the bytes from position on.
func caret(text string, position, length int) string {
	before := len([]rune(text[:position]))
	marks := len([]rune(text[position:min(position+length, len(text))]))
	return fmt.Sprintf("    %s\n    %s%s\n", output.Clean(text), strings.Repeat(" ", before), strings.Repeat("^", max(marks, 1)))
}

// nextStep proposes a command.
func nextStep(err error, cmd *cobra.Command) string {
	if e, ok := errors.AsType[*login.NotLoggedInError](err); ok {
		return "Log in with: carillon login --url " + e.Server + "   (or set CARILLON_API_KEY)"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "If its certificate is from an authority of your own, name that one's file in SSL_CERT_FILE."
	}
	if e, ok := errors.AsType[*apiclient.TransportError](err); ok && !errors.Is(err, context.Canceled) {
		return "Is the server running there? Name another one with --url or CARILLON_URL (now " + e.Host + ")."
	}
	p, ok := errors.AsType[*apiclient.Problem](err)
	if !ok {
		return ""
	}
	switch p.Code {
	case apiclient.ProblemCodeUnauthenticated, apiclient.ProblemCodeTokenExpired:
		return "The server did not take the credentials. Log in again with: carillon login (or check CARILLON_API_KEY)"
	case apiclient.ProblemCodePermissionDenied:
		return "Your role does not allow this, or your password must be changed first (carillon password). Who you are: carillon whoami"
	case apiclient.ProblemCodeRevisionMismatch:
		return "Somebody changed the job. Get it again with: carillon job get JOB -o yaml"
	case apiclient.ProblemCodeUnknownHandler:
		return "See what is registered with: carillon executor handlers EXECUTOR" + orPass(cmd, "allow-unknown-handler")
	case apiclient.ProblemCodeUnfitInput:
		return "See the handler's schema with: carillon executor handlers EXECUTOR -o yaml" + orPass(cmd, "allow-unfit-input")
	case apiclient.ProblemCodePolicyRefused:
		return "See what is allowed with: carillon script policy   (a platform administrator sets it, with --languages, --http and --callback-hosts)"
	case apiclient.ProblemCodeInUse:
		if cmd.Flags().Lookup("jobs") != nil && cmd.Flags().Lookup("instances") != nil {
			return "Take them along with: " + cmd.CommandPath() + " EXECUTOR --jobs --instances"
		}
	case apiclient.ProblemCodeExecutorOffline:
		return "See who is connected with: carillon executor list"
	case apiclient.ProblemCodeMaintenance:
		return "See what is under maintenance with: carillon maintenance show" + orPass(cmd, "during-maintenance")
	case apiclient.ProblemCodeInvalidCron:
		return "Try expressions with: carillon cron explain 'EXPRESSION'"
	case apiclient.ProblemCodeNotFound:
		if list := listOf(cmd, p); list != nil {
			return "See what there is with: " + list.CommandPath()
		}
	}
	return ""
}

// orPass proposes a flag, if the command has it.
func orPass(cmd *cobra.Command, flag string) string {
	if cmd.Flags().Lookup(flag) == nil {
		return ""
	}
	return "   (or pass --" + flag + ")"
}
