package mail

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/testenv"
)

var at = time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)

func notice() *notify.Notice {
	return &notify.Notice{
		DedupeKey: strings.Repeat("ab", 16), Try: 1, Target: "ann@example.com", Instance: "web-1",
		Event:    domain.AlertEvent{ID: 1, TenantID: 1, Kind: domain.AlertRunFailed, JobID: 5, ExecutionID: 1001, CreatedAt: at},
		Tenant:   domain.Tenant{ID: 1, Name: "shop"},
		Executor: domain.Executor{ID: 9, Name: "billing"},
		Job: domain.Job{ID: 5, Spec: domain.JobSpec{Name: "close-day", Handler: "billing.CloseDay",
			Schedule: domain.ScheduleSpec{Zone: "Asia/Shanghai"}}},
		Execution: &domain.Execution{ID: 1001, State: domain.Failed, Error: "no route to <db>\nline two", Message: "no route to <db>\nline two",
			FireAt: at, StartedAt: at.Add(7 * time.Millisecond), FinishedAt: at.Add(time.Second), Attempt: 3, MaxAttempts: 3, Instance: 77},
		RunURL: "https://c.example.com/runs/1001", JobURL: "https://c.example.com/jobs/5",
	}
}

// received is a mail as a mail program sees it.
type received struct {
	*netmail.Message
	plain, html string
}

func (r received) header(name string) string { return r.Header.Get(name) }

func (r received) subject(t *testing.T) string {
	s, err := new(mime.WordDecoder).DecodeHeader(r.Header.Get("Subject"))
	require.NoError(t, err)
	return s
}

func parse(t *testing.T, data string) received {
	t.Helper()
	m, err := netmail.ReadMessage(strings.NewReader(data))
	require.NoError(t, err)
	r := received{Message: m}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/alternative", kind)
	parts := multipart.NewReader(m.Body, params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return r
		}
		require.NoError(t, err)
		require.Equal(t, "quoted-printable", strings.ToLower(part.Header.Get("Content-Transfer-Encoding")))
		var text bytes.Buffer
		_, err = io.Copy(&text, quotedprintable.NewReader(part))
		require.NoError(t, err)
		content := strings.ReplaceAll(text.String(), "\r\n", "\n")
		switch part.Header.Get("Content-Type") {
		case "text/plain; charset=UTF-8":
			r.plain = content
		case "text/html; charset=UTF-8":
			r.html = content
		default:
			t.Fatalf("part of type %q", part.Header.Get("Content-Type"))
		}
	}
}

// sent sends n through a real server and returns what arrived.
func sent(t *testing.T, n *notify.Notice, language notify.Language) received {
	t.Helper()
	server := testenv.SMTP(t)
	require.NoError(t, sender(t, server, func(c *Config) { c.Language = language }).Send(t.Context(), n))
	return parse(t, server.WaitMails(t, 1)[0].Data)
}

func TestEnglishMail(t *testing.T) {
	n := notice()
	n.Log = []string{"02:00:00.100 INFO 12 of 400", "02:00:00.900 ERROR <gave up>"}
	m := sent(t, n, notify.English)
	require.Equal(t, "[Carillon] Failed: close-day: no route to <db>", m.subject(t))
	require.Equal(t, `"Carillon" <carillon@example.com>`, m.header("From"))
	require.Equal(t, "<ann@example.com>", m.header("To"))
	require.Equal(t, "auto-generated", m.header("Auto-Submitted"))
	require.Equal(t, "run_failed", m.header("Carillon-Kind"))
	require.Equal(t, `Failed: close-day

    no route to <db>
    line two

The run failed for good, after 3 attempts. It will not be tried again.

Job: close-day
Tenant: shop
Executor: billing / billing.CloseDay
Run: 1001
Due: 2026-11-21 02:00:00.000 +08:00 (Asia/Shanghai)
Started: 2026-11-21 02:00:00.007 +08:00 (Asia/Shanghai)
Ended: 2026-11-21 02:00:01.000 +08:00 (Asia/Shanghai)
Attempt: 3 of 3
Instance: web-1

Last lines of the log:

    02:00:00.100 INFO 12 of 400
    02:00:00.900 ERROR <gave up>

Open the run: https://c.example.com/runs/1001

-- 
Sent by Carillon because you own this job or are listed in its alerts.
`, m.plain)
	require.Contains(t, m.html, `no route to &lt;db&gt;`)
	require.Contains(t, m.html, `href="https://c.example.com/runs/1001"`)
	require.NotContains(t, m.html, "<db>")
	require.Contains(t, m.html, "&lt;gave up&gt;")
	require.Less(t, strings.Index(m.html, "no route to"), strings.Index(m.html, "failed for good"), "the error comes first")
}

func TestChineseMail(t *testing.T) {
	n := notice()
	n.Job.Spec.Name = "日终结算"
	n.Event.Kind, n.Execution.State, n.Execution.StartedAt = domain.AlertRunLost, domain.Succeeded, time.Time{}
	m := sent(t, n, notify.Chinese)
	require.Equal(t, "[Carillon] 执行结果未知：日终结算：no route to <db>", m.subject(t))
	for _, want := range []string{"任务: 日终结算", "计划时间: 2026-11-21 02:00:00.000 +08:00", "开始时间: 未开始", "第 3 次，共 3 次",
		"请人工核对", "此后该执行的状态已变为：成功。", "查看本次执行: https://c.example.com/runs/1001"} {
		require.Contains(t, m.plain, want)
	}
	require.Contains(t, m.html, `lang="zh-CN"`)
	require.Contains(t, m.html, "日终结算")
}

func TestMailAboutAJobWithoutARun(t *testing.T) {
	n := notice()
	n.Event.Kind, n.Execution, n.RunURL, n.Instance = domain.AlertNoExecutor, nil, "", ""
	m := sent(t, n, notify.English)
	require.Equal(t, "[Carillon] No executor online: close-day", m.subject(t))
	require.Contains(t, m.plain, "no instance of executor billing is online")
	require.Contains(t, m.plain, "Due: 2026-11-21 02:00:00.000 +08:00")
	require.Contains(t, m.plain, "Open the job: https://c.example.com/jobs/5")
	require.NotContains(t, m.plain, "Attempt")
}

func TestHeadersCannotBeInjected(t *testing.T) {
	const evil = "x\r\nBcc: eve@example.com\r\n\r\n<script>alert(1)</script>\x00\u2028"
	n := notice()
	n.Job.Spec.Name, n.Tenant.Name, n.Executor.Name, n.Job.Spec.Handler = evil, evil, evil, evil
	n.Instance, n.Execution.Error, n.Execution.Message = evil, evil, evil
	server := testenv.SMTP(t)
	require.NoError(t, sender(t, server).Send(t.Context(), n))
	raw := server.WaitMails(t, 1)[0]
	require.Equal(t, []string{"ann@example.com"}, raw.To)
	m := parse(t, raw.Data)
	require.Empty(t, m.header("Bcc"))
	require.NotContains(t, m.html, "<script")
	require.NotContains(t, m.plain, "\x00")
	require.NotContains(t, m.subject(t), "\n")
	for name := range m.Header {
		require.Contains(t, []string{"Auto-Submitted", "Carillon-Dedupe-Key", "Carillon-Kind", "Content-Type", "Date", "From",
			"Message-Id", "Mime-Version", "Subject", "To", "X-Auto-Response-Suppress"}, name)
	}
}

func TestAddressesThatAreNone(t *testing.T) {
	server := testenv.SMTP(t)
	s := sender(t, server)
	for _, address := range []string{"", "ann", "ann@example.com\r\nRCPT TO:<eve@example.com>", "ann@example.com, bob@example.com", "<ann@example.com> x"} {
		n := notice()
		n.Target = address
		require.True(t, permanent(s.Send(t.Context(), n)), "%q", address)
	}
	require.Empty(t, server.Mails())
}

func TestDotsAndLongLinesArrive(t *testing.T) {
	n := notice()
	n.Execution.Error = ".\r\n.\n..\nQUIT\n" + strings.Repeat("长", 3000) + "\n" + strings.Repeat("y", 9000)
	n.Execution.Message = ""
	m := sent(t, n, notify.English)
	require.Contains(t, m.plain, "    .\n    .\n    ..\n    QUIT\n    长长长")
	require.Contains(t, m.plain, "…\n")
	require.Less(t, len(m.plain), 20_000)
	require.Contains(t, m.plain, "Sent by Carillon", "the end is there")
}

func TestLongNamesAreCutInTheSubject(t *testing.T) {
	n := notice()
	n.Job.Spec.Name = strings.Repeat("名", 1000)
	subject := sent(t, n, notify.English).subject(t)
	require.Len(t, []rune(subject), maxSubject)
	require.True(t, strings.HasSuffix(subject, "…"))
}
