// Package docker implements engine.Engine with Docker's Go client, over the API of Docker or of a compatible socket, such as
// Podman's. It requires version 1.40 of the API, that is Docker 19.03.
//
//	docker.go     connecting; limits of time
//	classify.go   errors
//	container.go  containers: create, inspect, list, remove
//	exec.go       commands in containers
//	files.go      files of containers
//	image.go      images
//	network.go    networks
//	events.go     changes of containers
//
// Environment variables are not read: the caller passes them in Options.
package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
)

// Time limits of requests. They are generous: they only prevent that a runtime that hangs holds workers forever.
const (
	// dialTimeout limits connecting to the socket.
	dialTimeout = 10 * time.Second
	// shortTimeout limits requests that the runtime answers from memory.
	shortTimeout = 30 * time.Second
	// longTimeout limits requests that start or stop processes, or write files.
	longTimeout = 2 * time.Minute
	// pullTimeout limits pulling an image. Registries may be slow, but must not hang forever.
	pullTimeout = 30 * time.Minute
)

// Options say how to connect.
type Options struct {
	// Host is a URL such as unix:///var/run/docker.sock or tcp://host:2376, as in DOCKER_HOST. Empty: the socket of Docker.
	Host string
	// CertPath is a directory with ca.pem, cert.pem and key.pem for TLS, as in DOCKER_CERT_PATH. Empty: no TLS.
	CertPath string
	// UserAgent is the name of this program in requests.
	UserAgent string
}

// Docker implements engine.Engine. It is safe for concurrent use.
type Docker struct {
	api  *client.Client
	host string
	// creating serializes the creation of networks, of which Docker before version 25 creates several of one name.
	creating sync.Mutex
}

var _ engine.Engine = (*Docker)(nil)

// New returns an engine. It does not connect: every request does, so that the runtime may start later.
func New(o Options) (*Docker, error) {
	host := cmp.Or(o.Host, client.DefaultDockerHost)
	if scheme, _, _ := strings.Cut(host, "://"); !slices.Contains([]string{"unix", "tcp", "http", "https"}, scheme) {
		return nil, fmt.Errorf("cannot use container runtime %q: use a URL such as unix:///var/run/docker.sock or tcp://host:2376", host)
	}
	opts := []client.Opt{client.WithHost(host), client.WithDialContext(dialer(host))}
	if o.UserAgent != "" {
		opts = append(opts, client.WithUserAgent(o.UserAgent))
	}
	if dir := o.CertPath; dir != "" {
		opts = append(opts,
			client.WithTLSClientConfig(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")))
	}
	api, err := client.New(opts...)
	if err != nil {
		return nil, fmt.Errorf("cannot use container runtime %q: %w", host, err)
	}
	return &Docker{api: api, host: host}, nil
}

// dialer returns a function that connects to the host, whatever address it is called with, and whose errors keep their
// meaning: see dialError.
func dialer(host string) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if u, err := client.ParseHostURL(host); err == nil && u.Scheme == "unix" {
			network, address = u.Scheme, u.Host
		}
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, newDialError(err)
		}
		return conn, nil
	}
}

// within runs one request with a limit of time, and classifies its error. attempt describes the request.
func (d *Docker) within(ctx context.Context, limit time.Duration, attempt string, request func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := request(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = &timeoutError{host: d.host, limit: limit}
	}
	return d.classify(attempt, err)
}

// onContainer is within for a request about a container. verb begins the description of the request, such as "cannot start". Names
// become part of the path of requests, and users choose some of them.
func (d *Docker) onContainer(ctx context.Context, limit time.Duration, verb, name string, request func(context.Context) error) error {
	attempt := fmt.Sprintf("%s container %q", verb, name)
	if err := checkName(attempt, name); err != nil {
		return err
	}
	return d.within(ctx, limit, attempt, request)
}

// checkName rejects everything that is not a name or an ID of a container.
func checkName(attempt, name string) error {
	if !regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`).MatchString(name) {
		return &engine.Error{Reason: engine.Invalid, Attempt: attempt, Err: errors.New("it is not a valid name of a container")}
	}
	return nil
}
