package auth

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is the store of these tests: it keeps what package auth keeps, so
// that time can be virtual. The meaning of the real ones is storetest's matter.
type memory struct {
	store.Accounts // anything that is not written below must not be called

	mu          sync.Mutex
	values      map[string]string
	tenants     []domain.Tenant
	users       map[domain.UserID]domain.User
	memberships []domain.Membership
	refresh     map[[32]byte]*domain.RefreshToken
	revoked     map[int64]bool
	apiKeys     map[[32]byte]domain.APIKey
	touched     map[int64]time.Time
	joinTokens  map[[32]byte]*domain.JoinToken
	boots       map[string]bool
	executors   map[domain.ExecutorID]domain.Executor
	signing     map[string]domain.SigningKey
	lists       int   // calls of ListSigningKeys
	fault       error // answer of all reads, when set
}

func newMemory() *memory {
	return &memory{
		values: map[string]string{}, users: map[domain.UserID]domain.User{}, refresh: map[[32]byte]*domain.RefreshToken{},
		revoked: map[int64]bool{}, apiKeys: map[[32]byte]domain.APIKey{}, touched: map[int64]time.Time{},
		joinTokens: map[[32]byte]*domain.JoinToken{}, boots: map[string]bool{},
		executors: map[domain.ExecutorID]domain.Executor{}, signing: map[string]domain.SigningKey{},
	}
}

var errMissing = domain.Errorf(domain.CodeNotFound, "not found")

func (m *memory) ClusterValue(_ context.Context, key, initial string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.values[key]; !ok {
		m.values[key] = initial
	}
	return m.values[key], nil
}

func (m *memory) CreateFirstUser(_ context.Context, t domain.Tenant, u domain.User, role domain.Role) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.users) > 0 {
		return false, nil
	}
	m.tenants = append(m.tenants, t)
	m.users[u.ID] = u
	m.memberships = append(m.memberships, domain.Membership{TenantID: t.ID, UserID: u.ID, Role: role})
	return true, nil
}

func (m *memory) ListTenants(context.Context) ([]domain.Tenant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.tenants), nil
}

func (m *memory) FindTenant(_ context.Context, id domain.TenantID) (domain.Tenant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.tenants {
		if t.ID == id {
			return t, nil
		}
	}
	return domain.Tenant{}, errMissing
}

func (m *memory) FindUser(_ context.Context, id domain.UserID) (domain.User, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u, ok := m.users[id]
	if !ok {
		return u, errMissing
	}
	return u, m.fault
}

func (m *memory) FindUserByName(_ context.Context, name string) (domain.User, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.users {
		if u.Username == name {
			return u, m.fault
		}
	}
	return domain.User{}, errMissing
}

func (m *memory) UpdateUser(_ context.Context, u domain.User, _ domain.TenantID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users[u.ID] = u
	return nil
}

func (m *memory) ListMemberships(_ context.Context, user domain.UserID) ([]domain.Membership, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []domain.Membership
	for _, ms := range m.memberships {
		if ms.UserID == user {
			out = append(out, ms)
		}
	}
	return out, nil
}

func (m *memory) CreateRefreshToken(_ context.Context, t domain.RefreshToken) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refresh[t.Hash] = &t
	return nil
}

func (m *memory) UseRefreshToken(_ context.Context, hash [32]byte, grace time.Duration) (domain.RefreshToken, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.refresh[hash]
	switch {
	case !ok || m.revoked[t.Family]:
		return domain.RefreshToken{}, domain.Errorf(domain.CodeUnauthenticated, "unknown")
	case !t.UsedAt.IsZero() && time.Since(t.UsedAt) < grace:
		return *t, nil
	case !t.UsedAt.IsZero():
		m.revoked[t.Family] = true
		return domain.RefreshToken{}, domain.Errorf(domain.CodeUnauthenticated, "used before")
	case time.Now().After(t.ExpiresAt):
		return domain.RefreshToken{}, domain.Errorf(domain.CodeTokenExpired, "expired")
	}
	t.UsedAt = time.Now()
	return *t, nil
}

// age moves the first use of a refresh token into the past.
func (m *memory) age(token string, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.refresh[hashSecret(token)]
	t.UsedAt = t.UsedAt.Add(-d)
}

func (m *memory) RefreshFamilyEnded(_ context.Context, family int64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revoked[family], m.fault
}

func (m *memory) RevokeRefreshFamily(_ context.Context, family int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revoked[family] = true
	return nil
}

func (m *memory) CreateAPIKey(_ context.Context, k domain.APIKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apiKeys[k.Hash] = k
	return nil
}

func (m *memory) FindAPIKeyByHash(_ context.Context, hash [32]byte) (domain.APIKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.apiKeys[hash]
	if !ok {
		return k, errMissing
	}
	return k, m.fault
}

func (m *memory) RevokeAPIKey(_ context.Context, tenant domain.TenantID, id int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for hash, k := range m.apiKeys {
		if k.ID == id && k.TenantID == tenant {
			k.RevokedAt = time.Now()
			m.apiKeys[hash] = k
			return nil
		}
	}
	return errMissing
}

func (m *memory) TouchAPIKeys(_ context.Context, used map[int64]time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	for id, at := range used {
		m.touched[id] = at
	}
	return nil
}

func (m *memory) CreateJoinToken(_ context.Context, t domain.JoinToken) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joinTokens[t.Hash] = &t
	return nil
}

func (m *memory) UseJoinTokens(_ context.Context, list []store.JoinTokenUse) ([]store.UsedJoinToken, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return nil, m.fault
	}
	out := make([]store.UsedJoinToken, len(list))
	for i, use := range list {
		t, ok := m.joinTokens[use.Hash]
		if !ok {
			out[i].Err = domain.Errorf(domain.CodeUnauthenticated, "unknown join token")
			continue
		}
		if !m.boots[use.BootID] {
			m.boots[use.BootID] = true
			t.Uses++
		}
		out[i].Token = *t
		if e := m.executors[t.Executor]; e.TenantID == t.TenantID {
			out[i].Executor = e.Name
		}
	}
	return out, nil
}

func (m *memory) FindExecutor(_ context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.executors[id]
	if !ok || e.TenantID != tenant {
		return domain.Executor{}, errMissing
	}
	return e, nil
}

func (m *memory) FindExecutorIDs(_ context.Context, tenant domain.TenantID, names []string) (ids []domain.ExecutorID, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, e := range m.executors {
		if e.TenantID == tenant && slices.Contains(names, e.Name) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (m *memory) SaveSigningKey(_ context.Context, k domain.SigningKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.signing[k.ID] = k
	return nil
}

func (m *memory) ListSigningKeys(context.Context) ([]domain.SigningKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lists++
	if m.fault != nil {
		return nil, m.fault
	}
	var out []domain.SigningKey
	for _, k := range m.signing {
		if time.Now().Before(k.ExpiresAt) {
			out = append(out, k)
		}
	}
	return out, nil
}

// node is a Service on a memory store with a data directory of its own.
func node(t *testing.T, m *memory) *Service {
	t.Helper()
	ids := domain.NewIDSource(1, time.Now)
	s, err := New(t.Context(), Options{
		Store: m, DataDir: t.TempDir(), NewID: ids.Next, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return s
}

const adminPassword = "correct horse battery"

// withAdmin is a node on a store that has the first administrator.
func withAdmin(t *testing.T) (*Service, *memory) {
	t.Helper()
	m := newMemory()
	s := node(t, m)
	first, err := s.EnsureFirstAdmin(t.Context(), adminPassword)
	require.NoError(t, err)
	require.True(t, first.Created)
	return s, m
}

// addUser puts a member of a (new) tenant into the store.
func addUser(t *testing.T, s *Service, m *memory, name, tenant string, role domain.Role) domain.User {
	t.Helper()
	phc, err := s.HashPassword(t.Context(), 0, name+" password")
	require.NoError(t, err)
	u := domain.User{ID: domain.UserID(s.newID()), Username: name, PasswordHash: phc, SessionVersion: 1}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.tenants, func(t domain.Tenant) bool { return t.Name == tenant })
	if at < 0 {
		m.tenants = append(m.tenants, domain.Tenant{ID: domain.TenantID(s.newID()), Name: tenant})
		at = len(m.tenants) - 1
	}
	m.users[u.ID] = u
	m.memberships = append(m.memberships, domain.Membership{TenantID: m.tenants[at].ID, UserID: u.ID, Role: role})
	return u
}

func login(t *testing.T, s *Service, name, password string) Session {
	t.Helper()
	session, err := s.Login(t.Context(), LoginParams{Username: name, Password: password, Address: "192.0.2.1"})
	require.NoError(t, err)
	return session
}
