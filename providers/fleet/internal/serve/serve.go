// Package serve lets Machines download the data of restores whose BackupStore is a directory, by HTTP. The data is encrypted, and the
// Machine knows its hash and key from its bootstrap data; the path is a secret, too. Nothing else in a store can be read.
//
// What the data is, and when it exists, belongs in package restore.
package serve

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/restorescript"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/restore"
)

const (
	// prefix is how paths begin: namespace, name and a secret part follow.
	prefix = "/restore/"
	// portFile is the file in the data directory with the port, if the address does not say which.
	portFile = ".serve-port"
	// most is how many downloads there are at the same time.
	most = 4
	// headerLimit is how long a request may take to arrive, downloadLimit how long a download may take.
	headerLimit, downloadLimit = 10 * time.Second, time.Hour
)

// Server serves the data of restores.
type Server struct {
	// Restores reads ControlPlaneRestores, from a cache: everybody can send requests. Secrets reads from the API server.
	Restores, Secrets client.Reader
	Opener            backupstore.Opener

	listener net.Listener
	base     string
	places   chan struct{}
}

// Listen opens the address. at is the URL at which Machines reach it; empty: that of the address.
func (s *Server) Listen(ctx context.Context, address, at string) error {
	var err error
	if s.listener, err = s.listen(ctx, address); err != nil {
		return fmt.Errorf("opening --serve-address %s: %w", address, err)
	}
	s.base, s.places = strings.TrimSuffix(at, "/"), make(chan struct{}, most)
	if s.base == "" {
		s.base = "http://" + s.listener.Addr().String()
	}
	return nil
}

// listen opens an address. Instead of any free port, it is the one of the process before, if it is free: a Machine that starts while the
// manager is killed has that one, and tries again.
func (s *Server) listen(ctx context.Context, address string) (net.Listener, error) {
	open := &net.ListenConfig{}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port != "0" || s.Opener.DataDir == "" {
		return open.Listen(ctx, "tcp", address)
	}
	file := filepath.Join(s.Opener.DataDir, portFile)
	if before, err := os.ReadFile(file); err == nil {
		if l, err := open.Listen(ctx, "tcp", net.JoinHostPort(host, string(before))); err == nil {
			return l, nil
		}
	}
	l, err := open.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if _, port, err = net.SplitHostPort(l.Addr().String()); err == nil {
		err = errors.Join(os.MkdirAll(s.Opener.DataDir, 0o700), os.WriteFile(file, []byte(port), 0o600))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keeping the port: %w", err), l.Close())
	}
	return l, nil
}

// URL returns a new URL of the data of a restore.
func (s *Server) URL(r *fleetv1.ControlPlaneRestore) string {
	return s.base + prefix + r.Namespace + "/" + r.Name + "/" + rand.Text()
}

// Serves reports whether a URL is one that this server serves: not that of an earlier process with another address.
func (s *Server) Serves(url string) bool { return strings.HasPrefix(url, s.base+prefix) }

// NeedLeaderElection reports that the server runs in each replica: a Machine may reach any of them.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerLimit, WriteTimeout: downloadLimit, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // Machines try again.
	defer stop()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the data of restores: %w", err)
	}
	return nil
}

// ServeHTTP implements http.Handler. All errors that depend on the path are the same, so that they do not tell which restores there are.
func (s *Server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many downloads", http.StatusServiceUnavailable)
		return
	}
	body, size, err := s.open(request)
	if err != nil {
		http.NotFound(w, request)
		return
	}
	defer func() { _ = body.Close() }() // It is only read.
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	_, _ = io.Copy(w, body) // The Machine notices that the connection ends early.
}

// open returns the data of a restore, if the request has its secret path.
func (s *Server) open(request *http.Request) (io.ReadCloser, int64, error) {
	unknown := errors.New("there is no such data")
	parts := strings.Split(strings.TrimPrefix(request.URL.Path, prefix), "/")
	if request.Method != http.MethodGet || len(parts) != 3 || !strings.HasPrefix(request.URL.Path, prefix) {
		return nil, 0, unknown
	}
	r := &fleetv1.ControlPlaneRestore{}
	if err := s.Restores.Get(request.Context(), client.ObjectKey{Namespace: parts[0], Name: parts[1]}, r); err != nil {
		return nil, 0, err
	}
	if r.Status.Data == nil || r.Status.Backup == nil || r.Ended() {
		return nil, 0, unknown
	}
	secret := &corev1.Secret{}
	if err := s.Secrets.Get(request.Context(), client.ObjectKey{Namespace: r.Namespace, Name: restore.SecretName(r)}, secret); err != nil {
		return nil, 0, err
	}
	config, err := restorescript.Parse(string(secret.Data[fleetv1.RestoreConfigKey]))
	if err != nil {
		return nil, 0, err
	}
	at, err := url.Parse(config.URL)
	if err != nil || subtle.ConstantTimeCompare([]byte(at.Path[strings.LastIndex(at.Path, "/")+1:]), []byte(parts[2])) != 1 {
		return nil, 0, unknown
	}
	from, err := s.Opener.Named(request.Context(), r.Namespace, r.Status.Backup.StoreName)
	if err != nil {
		return nil, 0, err
	}
	body, err := from.Get(request.Context(), r.Status.Data.Key)
	return body, r.Status.Data.SizeBytes, err
}
