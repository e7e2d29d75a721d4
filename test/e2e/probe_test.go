package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/journey"
)

const (
	// interval is the time between two requests of a probe, patience the timeout of one.
	interval = 250 * time.Millisecond
	patience = 2 * time.Second
)

// probe sends requests until it is stopped.
type probe struct {
	t    *testing.T
	what string
	stop context.CancelFunc
	done chan struct{}

	// The rest is read after it has stopped.
	requests, failed int
	longest          time.Duration // between two successful requests
	last             error
}

// start calls ask until the probe is ended. ask closes nothing: what it needs lives until the end of the test.
func start(t *testing.T, what string, ask func(context.Context) error) *probe {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &probe{t: t, what: what, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		success := time.Now()
		for {
			limited, cancel := context.WithTimeout(ctx, patience)
			err := ask(limited)
			cancel()
			if ctx.Err() != nil {
				p.longest = max(p.longest, time.Since(success))
				return
			}
			p.requests++
			if err != nil {
				p.failed++
				p.last = fmt.Errorf("%s: %w", time.Now().Format(time.TimeOnly), err)
			} else {
				p.longest = max(p.longest, time.Since(success))
				success = time.Now()
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
	return p
}

// end stops the probe, logs its result, and fails the test if it was interrupted for longer than allowed.
func (p *probe) end(allowed time.Duration) {
	p.t.Helper()
	p.stop()
	<-p.done
	p.t.Logf("%s: %d requests, %d failed, longest interruption %.1f s", p.what, p.requests, p.failed, p.longest.Seconds())
	if p.requests == 0 {
		p.t.Errorf("%s: no request was sent", p.what)
	}
	if p.longest > allowed {
		p.t.Errorf("%s: interrupted for %.1f s, longer than %s; last error: %v", p.what, p.longest.Seconds(), allowed, p.last)
	}
}

// writes probes the API server, by changing an object through the control plane's endpoint.
func writes(t *testing.T, c *journey.Subject) *probe {
	t.Helper()
	config := c.Workload().Config()
	config.Timeout = patience
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	object, err := api.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	return start(t, "writes to the API server", func(ctx context.Context) error {
		n++
		object.ResourceVersion = ""
		object.Data = map[string]string{"n": strconv.Itoa(n)}
		_, err := api.CoreV1().ConfigMaps("default").Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
}

// quorum probes etcd, by writing to any of its members. Without a quorum, none accepts it.
func quorum(t *testing.T, c *journey.Subject) *probe {
	t.Helper()
	e := &etcd{cluster: c, clients: map[string]*clientv3.Client{}}
	t.Cleanup(e.close)
	return start(t, "writes to etcd", e.write)
}

type etcd struct {
	cluster *journey.Subject

	mu      sync.Mutex
	clients map[string]*clientv3.Client
}

func (e *etcd) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.clients {
		_ = c.Close()
	}
}

func (e *etcd) write(ctx context.Context) error {
	errs := errors.New("no control plane Machine has a Node")
	for _, m := range e.cluster.Snapshot().ControlPlane() {
		if m.Status.NodeRef == nil || !m.DeletionTimestamp.IsZero() {
			continue
		}
		err := e.writeTo(ctx, m.Status.NodeRef.Name)
		if err == nil {
			return nil
		}
		errs = errors.Join(errs, err)
	}
	return errs
}

func (e *etcd) writeTo(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, patience/3)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clients[node] == nil {
		c, err := e.cluster.Workload().Etcd(ctx, node)
		if err != nil {
			return err
		}
		e.clients[node] = c
	}
	_, err := e.clients[node].Put(ctx, "/e2e/probe", time.Now().String())
	return err
}

// application probes the web server of testdata/application.yaml.
func application(t *testing.T, c *journey.Subject) *probe {
	t.Helper()
	return balanced(t, c, "requests to the application", "30080/static/ok", func(body string) bool { return body == "ok" })
}

// balanced probes a port and path of Nodes as a load balancer does: of each worker in turn, and of the next one if one does not respond.
func balanced(t *testing.T, c *journey.Subject, what, path string, right func(body string) bool) *probe {
	t.Helper()
	h := &http.Client{Timeout: patience / 3, Transport: &http.Transport{DisableKeepAlives: true}}
	turn := 0
	return start(t, what, func(ctx context.Context) error {
		addresses := workerAddresses(c.Snapshot())
		if len(addresses) == 0 {
			return errors.New("no worker has an address")
		}
		turn++
		var err error
		for i := range min(2, len(addresses)) {
			if err = get(ctx, h, addresses[(turn+i)%len(addresses)]+":"+path, right); err == nil {
				return nil
			}
		}
		return err
	})
}

func get(ctx context.Context, h *http.Client, address string, right func(body string) bool) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
	if err != nil {
		return err
	}
	response, err := h.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !right(string(body))) {
		err = fmt.Errorf("%s answered %s: %q", address, response.Status, body)
	}
	return err
}

// workerAddresses returns the addresses of workers that run and are not being deleted.
func workerAddresses(p *journey.Snapshot) []string {
	var found []string
	for _, m := range p.Workers() {
		if m.Status.NodeRef == nil || !m.DeletionTimestamp.IsZero() {
			continue
		}
		i := slices.IndexFunc(m.Status.Addresses, func(a clusterv1.MachineAddress) bool { return a.Type == clusterv1.MachineInternalIP })
		if i >= 0 {
			found = append(found, m.Status.Addresses[i].Address)
		}
	}
	return found
}
