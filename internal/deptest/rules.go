package deptest

// bottom rooms hold nouns and pure decisions; whoever works below admin may
// import them.
const (
	domain     = "admin/internal/domain"
	timing     = "admin/internal/timing"
	ical       = "admin/internal/ical"
	httpconn   = "admin/internal/httpconn"
	doctorRoom = "admin/internal/doctor"
	explain    = "admin/internal/explain"
	jsonschema = "admin/internal/jsonschema"
	spelling   = "internal/spelling"
	documents  = "internal/document"
	egress     = "internal/egress"
	batch      = "admin/internal/batch"
	bytecache  = "admin/internal/bytecache"
	forecast   = "admin/internal/forecast"
	budget     = "admin/internal/budget"
	panics     = "admin/internal/panics"
	secret     = "admin/internal/secret"
	store      = "admin/internal/store"
	resource   = "admin/internal/resource"

	calendarKind = resource + "/calendar"
	scriptKind   = resource + "/script"

	failpoint   = "proto/failpoint"
	direct      = "proto/direct"
	schedule    = "schedule"
	declaration = "executor-sdk/declaration"
)

// Rooms that rules name more than once.
const (
	api            = "admin/internal/api"
	apiWeb         = api + "/web"
	apiDocument    = api + "/document"
	apiAccess      = api + "/access"
	apiApply       = api + "/apply"
	alertRoute     = addOnAlerting + "/route"
	apiBuiltIn     = api + "/builtin"
	apiCalendar    = api + "/calendar"
	apiCallback    = api + "/callback"
	apiCatalogue   = api + "/catalogue"
	apiScript      = api + "/script"
	apiSearch      = api + "/search"
	apiTenant      = api + "/tenant"
	apiTimer       = api + "/timer"
	auth           = "admin/internal/auth"
	notifyRoom     = addOnAlerting + "/notify"
	alertNoun      = addOnAlerting + "/noun"
	mailChannel    = addOnAlerting + "/mail"
	publish        = addOnBroker + "/publish"
	brokerWire     = "admin/internal/wire"
	nodeHandler    = "admin/internal/nodehandler"
	webhookChannel = addOnAlerting + "/webhook"
	chatChannel    = addOnAlerting + "/chat"
	alertPost      = addOnAlerting + "/post"
	gateway        = "admin/internal/gateway"
	gormstore      = store + "/gormstore"
	database       = gormstore + "/db"
	record         = gormstore + "/record"
	storeDocument  = gormstore + "/document"
	storeEngine    = gormstore + "/engine"
	storeAccess    = gormstore + "/access"
	alertSQL       = addOnAlerting + "/alertsql"
	storePast      = gormstore + "/past"
	storeRetention = gormstore + "/retention"
	storeTimer     = gormstore + "/timer"
	storeSearch    = gormstore + "/search"
	storeWeek      = gormstore + "/week"
	storeConsole   = gormstore + "/console"
	benchData      = gormstore + "/benchdata"
	runRoom        = "admin/internal/run"
	storetest      = store + "/storetest"
	logchunk       = store + "/logchunk"
	testenv        = "internal/testenv"
	lab            = testenv + "/lab"
	brokenPath     = testenv + "/proxy"
	apiclient      = "internal/apiclient"
	assistant      = "internal/assistant"
	addOn          = "admin/internal/addon"
	addOnAssistant = addOn + "/assistant"
	addOnAudit     = addOn + "/audit"
	addOnBroker    = addOn + "/broker"
	addOnAlerting  = addOn + "/alerting"
	addOnBulk      = addOn + "/bulk"
	addOnHello     = addOn + "/hello"
	brokerNoun     = addOnBroker + "/noun"
	faults         = "tools/faults"
	verify         = "admin/verify"
	benchRoom      = "admin/tools/bench"
	timerheap      = "admin/internal/timerheap"
	runtable       = "admin/internal/runtable"
	tracing        = "admin/internal/tracing"
	front          = "admin/internal/front"
	followup       = "admin/internal/followup"
	bridge         = "admin/internal/bridge"
	membership     = "admin/internal/membership"
	watchdog       = "admin/internal/watchdog"
	disabledRoom   = "admin/internal/disabled"
	clockguard     = "admin/internal/clockguard"
	telemetry      = "admin/internal/telemetry"
	sdkTracing     = "executor-sdk/tracing"
	executortest   = "executor-sdk/executortest"
	simulate       = "executor-sdk/simulate"
	generate       = "executor-sdk/generate"
	simulator      = "admin/tools/sim"
	hotTimers      = "admin/internal/hotset"
	expand         = verify + "/expand"
	accounts       = verify + "/ledger"
	provisioning   = "admin/internal/provision"
	sampleRoom     = "admin/internal/sample"
	agent          = "cmd/carillon/internal/agent"
	httpCall       = "internal/httpcall"
	callbacks      = "admin/internal/callback"
	backupRoom     = "admin/internal/backup"
	profileRoom    = "admin/internal/profile"
	checkRoom      = doctorRoom + "/check"
	calendarRoom   = "admin/internal/calendar"
	declareRoom    = "admin/internal/declare"
)

const (
	whyPure = "a bottom room: everybody may import it because it imports none of ours"
	// Of all rooms that stand side by side.
	whySide = "rooms side by side do not import each other: declare an interface of two or three methods here and let admin plug it in"
	whySDK  = "executor-sdk is what users inherit: it never sees the server, they meet in proto only"
	// Of the packages of the API that have its nouns.
	whyAPINoun = "a noun of the API stands on web and the store: what it needs of package api, that hands to it"
	whyBrokers = "messages to brokers leave through publish"
	whyNoun    = "it shows and edits nouns; what that does to runs is the engine's, and other nouns are the console's"
	whyAddOn   = "an add-on uses faces of the core: the core does not know it, and add-ons do not know each other"
	whyCmd     = "cmd only reads flags and exits: what it needs of the server, package admin hands out"
)

// Carillon returns the project's rules: who may import whom.
func Carillon() Rules {
	return Rules{Rooms: rooms(), Libraries: libraries(), Closed: closed(), Machines: machines()}
}

// machines measure, break, simulate and judge the product, or serve its tests.
// docs/adr/0061 says how each of them reaches what it needs.
func machines() []string {
	return []string{
		"tools", "admin/tools", simulate, testenv, "internal/deptest",
		storetest, gormstore + "/gormtest", benchData, "executor-sdk/internal/fakeadmin",
	}
}

func rooms() []Room {
	return []Room{
		{"proto", nil, "the wire is where server and SDK meet: it belongs to neither"},
		{failpoint, nil, "tests break processes there; a release holds nothing of it"},
		{direct, nil, "it moves bytes, and knows nothing of what they mean: it lies in proto because server and SDK share that module"},
		{schedule, nil, "it computes when schedules fire, and knows nothing of jobs"},
		{declaration, []string{"proto", schedule}, "the one place where a declared job meets the engine of schedules, for server and executortest"},
		{"executor-sdk", []string{"proto", failpoint, direct}, whySDK},
		{executortest, []string{"executor-sdk", "proto", schedule, declaration}, "applications are tested with it: it sees of the server what they see, and the engine of schedules"},
		{generate, []string{"executor-sdk", "proto"}, "a module of its own: it writes code that uses the SDK, and needs of it the limits of the wire"},
		{sdkTracing, []string{"executor-sdk"}, "a module of its own for those who want its library: it sees of the SDK what users see"},

		{simulate, []string{"executor-sdk"}, "a module of its own, so that nobody inherits it: it hands out the SDK's machine, and nothing but that"},

		{domain, nil, whyPure},
		{timing, []string{domain, schedule}, "the one place where a job's schedule meets the engine that computes fires"},
		{batch, []string{panics}, whyPure},
		{bytecache, []string{domain}, whyPure},
		{forecast, []string{domain, store, timing, schedule, bytecache}, "it counts fires that schedules will have, and asks a store for no more than the schedules"},
		{budget, nil, whyPure},
		{panics, nil, whyPure},
		{ical, []string{schedule}, "it reads a file format and knows nothing of what is made of it; names of time zones are the schedule's"},
		{httpconn, nil, "it counts connections and knows nothing of what they ask for"},
		{doctorRoom, []string{spelling}, "it asks questions and knows nothing of what they are about: package check brings those of the server"},
		{checkRoom, []string{doctorRoom, spelling, domain, secret, schedule, gormstore, "admin/internal/scheduler", hotTimers, egress}, "it looks at what a node would use, in the way a node uses it: package admin says which settings, and what only a node knows"},
		{secret, []string{domain}, "it seals what it is given and knows no tables"},
		{"sql", nil, "hand-written DDL and nothing else"},
		{"packaging", nil, "files that bring the binary onto a machine, and tests that run it from outside"},
		{"web-ui", nil, "built pages and nothing else: the API is their only way to the server"},

		{calendarKind, []string{resource, domain, timing, schedule}, "it says which documents are calendars, and knows no database"},
		{store, []string{domain, resource}, "the store declares what may be asked; how it is answered is gormstore's"},
		{runRoom, []string{domain, store}, "it decides on rows that were loaded: storage and simulator load them, each in its way"},
		{logchunk, []string{domain}, "it knows lines and bytes, and not where they are kept"},
		{database, []string{store, domain, panics, failpoint, direct, "sql"}, "it speaks to a database, and does not know what is kept there"},
		{scriptKind, []string{resource, domain}, "it says which documents are scripts, and knows no database"},
		{record, []string{store, domain, resource, calendarKind, database, bytecache}, "it knows rows and what they mean, and not what becomes of them"},
		{resource, []string{domain}, "it says what a document is, and knows no kind and no database"},
		{storeDocument, []string{domain, store, resource, database, record}, "it keeps documents of all kinds, and knows no kind"},
		{storeEngine, []string{store, runRoom, logchunk, domain, panics, database, record, bytecache}, "it moves runs, and does not know who looks at them"},
		{alertSQL, []string{notifyRoom, alertNoun, store, domain, resource, panics, database, record, storeDocument, storeEngine}, whyNoun},
		{storePast, []string{store, domain, database, record}, whyNoun},
		{storeRetention, []string{store, domain, database, record, storeEngine}, whyNoun},
		{storeAccess, []string{store, domain, database, record, storeEngine, storeRetention}, whyNoun},
		{storeTimer, []string{store, domain, database, record, storeEngine}, whyNoun},
		{storeConsole, []string{store, resource, calendarKind, scriptKind, storeDocument, runRoom, logchunk, domain, database, record, storeEngine, storeAccess, storePast, storeRetention, storeTimer, storeWeek}, whyNoun},
		{storeSearch, []string{domain, database, record}, whyNoun},
		{storeWeek, []string{domain, database, record}, whyNoun},
		{gormstore, []string{store, domain, database, record, storeEngine, storeConsole, storeSearch}, "it opens a store, and knows none who use it"},
		{storetest, []string{store, domain, resource, calendarKind, scriptKind, notifyRoom, alertNoun}, "one suite for all databases must not know any of them"},
		{benchData, []string{domain, database, record}, "it writes rows as real use leaves them, without the rules by which they come about"},
		{gormstore + "/gormtest", []string{gormstore}, "it makes databases, and leaves the use of them to the tests"},

		{"admin/internal/lease", []string{domain, store}, whySide},
		{timerheap, nil, whyPure},
		{runtable, []string{domain}, "it says where runs are; what becomes of them is for the rooms that hold them to decide"},
		{"admin/internal/scheduler", []string{domain, store, timing, panics, timerheap, runtable}, whySide},
		{"admin/internal/dispatch", []string{domain, store, batch, timerheap, runtable}, whySide},
		{hotTimers, []string{domain, store, panics, brokerWire}, whySide},
		// The gateway keeps the rows of sessions and instances, hence store.
		{gateway, []string{domain, store, batch, panics, "proto", failpoint, direct}, whySide},
		// A fixed delay is counted from the end of a run, hence schedule.
		{"admin/internal/completer", []string{domain, store, batch, schedule}, whySide},
		{"admin/internal/sweeper", []string{domain, store, panics}, whySide},
		{"admin/internal/calljob", []string{domain, store, nodeHandler}, whySide},
		{backupRoom, []string{domain, secret, gormstore}, "it copies files of databases and keys: a node that serves them knows nothing of it"},
		{profileRoom, []string{egress}, "it looks at this process, and knows nothing of what the process is for"},
		{calendarRoom, []string{domain, store, timing}, whySide},
		// Declarations are frames of the wire, and their schedules are compiled before they are taken.
		{declareRoom, []string{"proto", domain, store, timing, schedule, declaration}, whySide},
		// It is an application of the SDK whose processes are the admin nodes.
		{callbacks, []string{domain, store, secret, budget, nodeHandler, "executor-sdk", httpCall, egress}, whySide},
		{notifyRoom, []string{alertNoun, domain, store, panics, secret}, whySide},
		{alertNoun, []string{domain, resource, secret}, whyPure},
		{mailChannel, []string{notifyRoom, alertNoun, domain, secret, egress}, whySide},
		{alertPost, []string{notifyRoom, httpCall, egress}, whySide},
		{webhookChannel, []string{notifyRoom, alertNoun, alertPost, domain, secret, httpCall}, whySide},
		{chatChannel, []string{notifyRoom, alertNoun, alertPost, domain}, whySide},
		{publish, []string{brokerNoun, domain, resource, secret, egress, brokerWire}, whySide},
		{brokerNoun, []string{domain, resource}, whyPure},
		{brokerWire, nil, "it bounds bytes of brokers and knows nothing of messages"},
		{auth, []string{domain, store, secret, spelling}, whySide},
		{sampleRoom, []string{domain, store, timing}, "it makes up rows of a shop, and does not store them"},
		// It makes documents as an apply does, hence the rooms of the API.
		{provisioning, []string{domain, store, auth, apiWeb, apiApply, documents, spelling}, whySide},
		{tracing, []string{domain}, "it writes spans about nouns; whoever moves them tells it"},
		// The input of a callback has the bounds of the wire, hence proto.
		{followup, []string{domain, store, nodeHandler, "proto"}, whySide},
		{front, []string{domain, apiWeb, httpconn, spelling}, "it serves what the API hands it, and answers in the API's words until then"},
		{bridge, []string{domain, store, "proto", gateway, "admin/internal/dispatch", "admin/internal/completer"}, "it translates between three rooms that do not know each other, so it knows them"},
		{membership, []string{domain}, whySide},
		{watchdog, []string{domain, store}, whySide},
		{disabledRoom, []string{domain, store}, whySide},
		{clockguard, []string{domain, store, "admin/internal/lease", "admin/internal/scheduler"}, "it judges the clock that the scheduler goes by, from what the leases have seen of other nodes"},
		{telemetry, []string{domain, store, database, batch, tracing, gateway, hotTimers, httpconn}, "it stands above the rooms, counts what passes between them and reads the numbers that they keep: none of them knows it"},
		{nodeHandler, []string{domain, "executor-sdk"}, "a bottom room: it says what a handler of the nodes is, and knows none"},
		{addOn, []string{apiWeb, auth, domain, store, doctorRoom, nodeHandler, secret, database, storeEngine}, "it says what an add-on is, and knows none"},
		{addOnBroker, []string{addOn, publish, brokerNoun, apiWeb, apiDocument, apiBuiltIn, auth, domain, resource, doctorRoom, nodeHandler, secret, database, storeDocument, "executor-sdk", httpCall, egress}, whyAddOn},
		{addOnAlerting, []string{addOn, notifyRoom, alertNoun, alertSQL, alertRoute, mailChannel, webhookChannel, chatChannel, alertPost, apiWeb, domain, doctorRoom}, whyAddOn},
		{addOnAudit, []string{addOn, apiWeb, auth, domain, secret, database, spelling}, whyAddOn},
		{addOnHello, []string{addOn, apiWeb, apiBuiltIn, auth, domain, nodeHandler, database, "executor-sdk"}, whyAddOn},
		{addOnBulk, []string{addOn, apiWeb, auth, domain, store, database, spelling}, whyAddOn},
		{addOnAssistant, []string{addOn, apiWeb, domain, auth, assistant}, whyAddOn},
		{explain, []string{domain}, "it puts rows into words; whoever asks brings them"},
		{egress, nil, "it judges and dials addresses of users and knows nothing of what goes there"},
		{spelling, nil, "it compares and counts words and knows nothing of what they name; the server and the command line give the same hints"},
		{documents, nil, "it reads values that people wrote and knows nothing of what they mean; the server and the command line read them alike"},
		{jsonschema, nil, "it holds values against schemas and knows nothing of either's meaning"},
		{apiWeb, []string{domain, resource, auth, budget, spelling}, "it answers requests, and does not know what they are about: the nouns of the API stand on it"},
		{apiDocument, []string{apiWeb, domain, resource, auth}, "it serves documents of all kinds, and knows no kind"},
		{apiApply, []string{apiWeb, domain, resource, auth}, "it plans documents of all kinds, and knows no kind"},
		{apiAccess, []string{apiWeb, domain, store, auth, apiDocument, resource}, whyAPINoun},
		{alertRoute, []string{notifyRoom, alertNoun, apiWeb, apiDocument, domain, resource, store, auth}, whyAPINoun},
		{apiBuiltIn, []string{apiWeb, domain, store, auth, secret, httpCall, nodeHandler}, whyAPINoun},
		{apiCalendar, []string{apiWeb, apiDocument, domain, resource, calendarKind, store, auth, schedule, ical}, whyAPINoun},
		{apiCatalogue, []string{apiWeb, domain, store, auth, jsonschema, spelling}, whyAPINoun},
		// Callbacks that code declares are frames of the wire, hence proto.
		{apiCallback, []string{"proto", apiWeb, apiBuiltIn, apiCatalogue, domain, store, auth, nodeHandler}, whyAPINoun},
		{apiScript, []string{apiWeb, apiDocument, apiBuiltIn, domain, resource, scriptKind, store, auth}, whyAPINoun},
		{apiSearch, []string{apiWeb, domain, auth}, "it searches documents of all kinds, and knows no kind"},
		{apiTenant, []string{apiWeb, domain, store, auth, apiDocument, resource}, whyAPINoun},
		{apiTimer, []string{apiWeb, apiBuiltIn, apiCatalogue, batch, domain, store, auth, nodeHandler}, whyAPINoun},
		{api, []string{
			apiWeb, apiAccess, apiApply, apiBuiltIn, apiCalendar, apiCallback, apiCatalogue, apiDocument, apiScript, apiSearch, apiTenant, apiTimer,
			domain, resource, calendarKind, scriptKind, store, schedule, timing, forecast, secret, auth, explain, nodeHandler,
		}, whySide},

		{"admin", []string{
			"proto", "sql", domain, schedule, declaration, timing, batch, secret, store, gormstore,
			"admin/internal/lease", runtable, "admin/internal/scheduler", "admin/internal/dispatch", gateway,
			"admin/internal/completer", "admin/internal/sweeper", "admin/internal/calljob", callbacks, calendarRoom, declareRoom, backupRoom, profileRoom,
			auth, api, apiCallback, apiWeb, httpconn, verify, accounts, tracing, telemetry, front, followup, bridge, membership, watchdog, clockguard, disabledRoom, hotTimers, doctorRoom, checkRoom, provisioning, sampleRoom, egress, addOn, addOnAlerting, addOnAssistant, addOnAudit, addOnBroker, addOnBulk, addOnHello, nodeHandler,
		}, "admin wires the server; executors are other processes, and what tests need is not for production"},
		{simulator, []string{
			domain, store, runRoom, timing, batch, runtable, "admin/internal/lease", "admin/internal/scheduler", "admin/internal/dispatch",
			"admin/internal/completer", "admin/internal/sweeper", gateway, simulate, "proto",
		}, "it runs the rooms and plays all that is between them; nobody runs it but tests"},
		{benchRoom, []string{
			domain, store, gormstore, benchData, "admin/internal/scheduler", "admin/internal/dispatch", "admin/internal/completer", auth,
			gateway, verify, lab, apiclient, testenv, brokenPath, "admin", "executor-sdk", "proto",
		}, "it measures processes from outside, knows the store only to fill tables and to repeat its statements, and the gateway to measure the wire alone"},
		// The binary brings the pages, so that a server in a test needs none.
		{"cmd", []string{"admin", "executor-sdk", generate, "web-ui", schedule, spelling, documents, verify, agent, apiclient, assistant, egress}, whyCmd},
		{httpCall, []string{"executor-sdk", egress}, "it makes calls for handlers, and knows no more of the server than they do"},
		{agent, []string{"executor-sdk", httpCall}, "it is an application of the SDK like any other: it knows no more of the server"},

		{expand, nil, "the second cron: it must not see the first one"},
		{accounts, []string{verify, store, domain}, "it reads the ledger and nothing else of the engine"},
		{verify, []string{expand}, "it judges the engine from outside: it may believe neither its code nor its tables"},

		{"internal/docs", nil, "it reads documents as files; what they say is not for it to know"},
		{assistant, []string{apiclient, spelling}, "it asks the API like any other program, with the caller's rights: it may know no more than a user"},
		{apiclient, nil, "it knows the API's document and nothing of the server"},
		{testenv, nil, "real parts for tests, which may be tests of any room"},
		{lab, []string{verify, apiclient}, "it drives real processes from outside: it may know no more than a user"},
		{brokenPath, nil, "a broken path knows bytes and nothing else"},
		{faults + "/netns", nil, "a pulled cable knows nothing of who talks over it"},
		{faults + "/hostile", []string{"proto"}, "an attacker knows what the specification says, and a token"},
		{faults, []string{"executor-sdk", testenv, apiclient, lab, verify, expand, brokenPath, faults + "/netns", faults + "/hostile"}, "it breaks real processes from outside: it may know no more than a user"},
		{"tools", nil, "they read the checkout, and nothing of the product"},
		{"tools/withparts", []string{testenv}, "it starts servers for tests, and knows none of them"},
		{"internal/deptest", nil, "it looks at the rooms from outside"},
		{"tools/outbox", []string{testenv}, "tests of the SDK's outbox on real databases: their drivers are not for the SDK's module"},
		{"tools/mutants", nil, "it changes the text of rooms and runs their tests: it may believe none of them"},
	}
}

// One library, one room: a library that leaks is hard to call back.
// .golangci.yml says the same to editors; a test keeps both in step.
func libraries() []Library {
	return []Library{
		{"github.com/gin-gonic/gin", []string{api, apiWeb}, "HTTP belongs to the api"},
		{"github.com/danielgtaylor/huma", []string{apiCallback, api, apiWeb, apiDocument}, "HTTP belongs to the api"},
		{"gorm.io", []string{gormstore, database, record, storeDocument, storeEngine, storeAccess, alertSQL, storePast, storeRetention, storeTimer, storeConsole, storeSearch, benchData}, "SQL belongs to gormstore, and to the tables of add-ons"},
		{"github.com/pressly/goose", []string{database}, "migrations belong to gormstore/db"},
		{"github.com/go-sql-driver/mysql", []string{database, storeEngine, benchRoom, testenv, lab, faults, "cmd"}, "SQL belongs to gormstore"},
		{"github.com/lib/pq", nil, "applications have their outbox in PostgreSQL: only tests of that need it"},
		{"modernc.org/sqlite", []string{database, storeEngine, benchRoom, testenv, lab, faults, "cmd"}, "SQL belongs to gormstore"},
		{"github.com/hashicorp/yamux", []string{gateway, "executor-sdk", benchRoom, faults + "/hostile"}, "the wire belongs to the gateway and the SDK; bench measures it alone, and faults floods it"},
		{"github.com/golang-jwt/jwt", []string{auth}, "tokens belong to auth"},
		{"github.com/robfig/cron", []string{schedule}, "one engine computes preview, UI and fires, of the server and of tests"},
		{"github.com/teambition/rrule-go", []string{ical}, "recurring events are written out when they are read"},
		{"github.com/go-co-op/gocron", []string{"admin/internal/sweeper"}, "gocron is for housekeeping: it is too late for triggers"},
		{"go.opentelemetry.io/otel", []string{tracing, sdkTracing}, "traces belong to tracing, and to the SDK's module for them"},
		{"github.com/wneessen/go-mail", []string{mailChannel}, "mail belongs to its channel"},
		{"github.com/nats-io/nats.go", []string{publish}, whyBrokers},
		{"github.com/rabbitmq/amqp091-go", []string{publish, benchRoom}, whyBrokers},
		{"github.com/twmb/franz-go", []string{publish}, whyBrokers},
		{"github.com/redis/go-redis", []string{publish, hotTimers}, "messages to brokers leave through publish, and Redis keeps timers for hotset"},
		{"github.com/nats-io/nats-server", nil, "only tests need it"},
		{"code.dny.dev/ssrf", []string{egress}, "one guard decides which addresses of users may be reached"},
		{"github.com/modelcontextprotocol/go-sdk", []string{assistant, "cmd"}, "assistants are answered by internal/assistant; cmd hands it standard input and output"},
		{"github.com/spf13/cobra", []string{"cmd"}, whyCmd},
		{"github.com/knadh/koanf", []string{"cmd"}, whyCmd},
		{"go.yaml.in/yaml", []string{documents}, "one rule says what a scalar of YAML is"},
		{"github.com/jedib0t/go-pretty", []string{"cmd"}, "the terminal belongs to cmd"},
		{"github.com/stretchr/testify", []string{storetest, testenv}, "only tests need it"},
		{"go.uber.org/goleak", []string{storetest, testenv}, "only tests need it"},
		{"pgregory.net/rapid", []string{storetest, testenv}, "only tests need it"},
		{"github.com/emersion/go-smtp", []string{testenv}, "only the mail server of tests needs it"},
	}
}

func closed() []Closed {
	const why = "whoever embeds the SDK inherits it; yamux and protobuf are the promise"
	inherited := []string{"github.com/hashicorp/yamux", "google.golang.org/protobuf"}
	cron := []string{"github.com/robfig/cron"}
	return []Closed{
		{"executor-sdk", inherited, why},
		{sdkTracing, append([]string{
			"go.opentelemetry.io", "github.com/go-logr", "github.com/cespare/xxhash",
		}, inherited...), "whoever asks for traces inherits OpenTelemetry's API, and no exporter"},
		{generate, inherited, "it is built on the machines of users"},
		{"proto", inherited[1:], why},
		{schedule, cron, "the engine of schedules, for the server and for tests of applications: no application is linked with it"},
		{declaration, append(cron, inherited[1:]...), "the server and executortest ask it: no application is linked with it"},
		{executortest, append(cron, inherited...), "tests of applications are linked with it"},
	}
}
