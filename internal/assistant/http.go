package assistant

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// HandlerOptions of a Handler.
type HandlerOptions struct {
	// API answers the tools' questions. Required.
	API http.Handler
	// Page is an address of the pages that may call, such as https://carillon.example.com/x.
	Page string
	// Writes lets callers whose role may operate see the tools that change something.
	Writes  bool
	Version string
	Logger  *slog.Logger
}

// atOnce bounds the calls of tools of one message that run at once.
const atOnce = 4

// MaxBody bounds a message to a Handler, in bytes; the API takes as much.
const MaxBody = 1 << 20

// maxAPIAnswer bounds what the API answers to a tool, in bytes; the largest is a page of
// log lines.
const maxAPIAnswer = 16 << 20

// Handler speaks the protocol over HTTP, inside a node. It keeps nothing between two
// requests: there are no sessions that could be many, grow old or be taken over, and
// each request may go to another node. Each asks the API with the credentials that it
// has brought.
type Handler struct {
	options HandlerOptions
	origin  string // of Page
	host    string // of Page, without the port
	mcp     http.Handler
}

// NewHandler makes one.
func NewHandler(o HandlerOptions) *Handler {
	h := &Handler{options: o}
	if u, err := url.Parse(strings.ToLower(o.Page)); err == nil && u.Host != "" {
		h.origin, h.host = u.Scheme+"://"+u.Host, u.Hostname()
	}
	h.mcp = mcp.NewStreamableHTTPHandler(h.server, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: MaxBody, Logger: o.Logger, PropagateRequestCancellation: true,
		// Serve checks host and origin, also behind a proxy on this machine.
		DisableLocalhostProtection: true,
	})
	return h
}

type visitKey struct{}

// visit is one request. It is owned by the goroutine that serves it.
type visit struct {
	operates bool
	server   *mcp.Server
}

// Serve answers one message of a caller that the API knows. operates: its role may
// operate.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, operates bool) {
	// A page of another site can be served under a name that was made to lead here (DNS
	// rebinding). Its requests have that name as their host, and not all have an origin.
	if !h.serves(r.Host) {
		http.Error(w, fmt.Sprintf("requests to the host %q are refused here: use the host of --base-url (%s), an IP address or localhost", r.Host, h.host), http.StatusForbidden)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != h.origin {
		http.Error(w, "requests from pages of other sites are refused here", http.StatusForbidden)
		return
	}
	h.mcp.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, &visit{operates: operates})))
}

// Requests counts the requests of a message: the elements of a JSON-RPC batch, and 1 for
// anything else. It looks at brackets and commas alone. Of a message that is not JSON,
// which Serve refuses, the number means nothing.
func (h *Handler) Requests(message []byte) int {
	message = bytes.TrimLeft(message, " \t\r\n")
	if len(message) == 0 || message[0] != '[' {
		return 1
	}
	n, depth, text := 1, 0, false
	for i := 0; i < len(message); i++ {
		switch c := message[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 1:
			n++
		}
	}
	return n
}

// serves reports whether a request may name that host. Addresses and localhost cannot
// be made to lead elsewhere.
func (h *Handler) serves(host string) bool {
	u := url.URL{Host: host}
	name := strings.TrimSuffix(u.Hostname(), ".")
	_, err := netip.ParseAddr(name)
	return err == nil || name != "" && strings.EqualFold(name, h.host) || strings.EqualFold(name, "localhost")
}

// server makes the one of a request, which is asked for twice.
func (h *Handler) server(r *http.Request) *mcp.Server {
	v, _ := r.Context().Value(visitKey{}).(*visit)
	if v.server == nil {
		v.server = h.newServer(r, v.operates)
	}
	return v.server
}

func (h *Handler) newServer(r *http.Request, operates bool) *mcp.Server {
	client, err := apiclient.New("http://this-node", &inside{h: h, caller: r})
	if err != nil {
		panic("assistant: " + err.Error()) // the address is ours
	}
	o := Options{Client: client, Writes: h.options.Writes && operates, Version: h.options.Version, Logger: h.options.Logger}
	switch {
	case !h.options.Writes:
		o.Refusal = "This node only lets assistants look. Who runs the node may allow more: carillon server --mcp write."
	case !operates:
		o.Refusal = "The role of this connection only looks. An administrator of the tenant may give it the role operator, or a higher one."
	}
	server := New(o)
	server.AddReceivingMiddleware(few(atOnce))
	return server
}

// few lets n calls of tools run at once. The others wait.
func few(n int) mcp.Middleware {
	room := make(chan struct{}, n)
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			if _, ok := request.(*mcp.CallToolRequest); !ok {
				return next(ctx, method, request)
			}
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			defer func() { <-room }()
			return next(ctx, method, request)
		}
	}
}

// inside asks the API of this process as the caller would.
type inside struct {
	h      *Handler
	caller *http.Request // read only
}

// Do implements apiclient.Doer.
func (d *inside) Do(request *http.Request) (*http.Response, error) {
	// The call ends when its caller leaves, also with those versions of the protocol
	// that have no word for it.
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	defer context.AfterFunc(d.caller.Context(), cancel)()
	request = request.WithContext(ctx)
	for _, name := range []string{"Authorization", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-Ip", "Traceparent"} {
		if values := d.caller.Header.Values(name); len(values) > 0 {
			request.Header[name] = values
		}
	}
	request.Header.Set("User-Agent", UserAgent+d.h.options.Version)
	request.RemoteAddr, request.TLS, request.RequestURI = d.caller.RemoteAddr, d.caller.TLS, request.URL.RequestURI()
	a := &apiAnswer{header: http.Header{}}
	d.h.options.API.ServeHTTP(a, request)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a.tooLarge {
		return nil, fmt.Errorf("the answer is larger than %d bytes; ask for less at once", maxAPIAnswer)
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Header: a.header, Request: request,
		Body: io.NopCloser(bytes.NewReader(a.body.Bytes())), ContentLength: int64(a.body.Len()),
	}, nil
}

// apiAnswer is an http.ResponseWriter into memory.
type apiAnswer struct {
	header   http.Header
	status   int
	body     bytes.Buffer
	tooLarge bool
}

func (a *apiAnswer) Header() http.Header { return a.header }

func (a *apiAnswer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *apiAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.body.Len()+len(p) > maxAPIAnswer {
		a.tooLarge = true
		return 0, io.ErrShortWrite
	}
	return a.body.Write(p)
}
