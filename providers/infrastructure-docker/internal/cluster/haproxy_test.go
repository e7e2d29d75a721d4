package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/docker"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/docker/dockertest"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/loadbalancer"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// backendConfig makes HAProxy an HTTPS server that responds to every request with its own name.
const backendConfig = `global
  maxconn 1000
  no strict-limits
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout http-keep-alive 1h
frontend api
  bind *:6443 ssl crt /usr/local/etc/haproxy/server.pem
  http-request return status 200 content-type text/plain string %s
`

// haproxy is the controller over real containers with HAProxy, or skips the test if there is no container runtime.
type haproxy struct {
	*world
	engine  engine.Engine
	cluster string
}

func newHAProxy(t *testing.T) *haproxy {
	t.Helper()
	e, err := docker.New(docker.Options{Host: dockertest.Host(t), CertPath: os.Getenv("DOCKER_CERT_PATH")})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.EnsureImage(t.Context(), imageOf(dockerv1.DockerLoadBalancer{})); err != nil {
		absent := t.Skipf
		if os.Getenv("CAPI_REQUIRE_DOCKER") != "" {
			absent = t.Fatalf
		}
		absent("the image of the load balancer is required: %v", err)
	}
	h := &haproxy{engine: e, cluster: fmt.Sprintf("capd-test-%d", os.Getpid())}
	cluster, infra := newCluster(), newInfra()
	cluster.Name = h.cluster
	infra.UID = "real-uid"
	infra.Labels["cluster.x-k8s.io/cluster-name"] = h.cluster
	h.world = newWorld(t, cluster, infra)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		all, err := e.List(ctx, map[string]string{identity.ClusterLabel: h.cluster})
		if err != nil {
			t.Error(err)
		}
		for _, c := range all {
			if err := e.Remove(ctx, c.Name); err != nil {
				t.Error(err)
			}
		}
		if err := e.RemoveNetwork(ctx, identity.Network); err != nil {
			t.Error(err)
		}
	})
	return h
}

// reconcile runs the controller over the container runtime. It may have to run again, because HAProxy may be starting.
func (h *haproxy) reconcile() error {
	h.Clock.SetTime(time.Now())
	if err := h.over(h.engine); !errors.Is(err, errStale) {
		return err
	}
	return nil
}

func (h *haproxy) must() {
	h.t.Helper()
	if err := h.reconcile(); err != nil {
		h.t.Fatal(err)
	}
}

// backend creates a machine with an HTTPS server on port 6443, and its DockerMachine.
func (h *haproxy) backend(name string) *dockerv1.DockerMachine {
	h.t.Helper()
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	pair, err := ca.Issue(pki.Request{CommonName: name, Validity: time.Hour}, time.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	err = h.engine.Create(h.t.Context(), engine.Container{
		Name: h.cluster + "-" + name, Image: imageOf(dockerv1.DockerLoadBalancer{}), Network: identity.Network,
		Labels: map[string]string{identity.ClusterLabel: h.cluster},
		Files: []engine.File{
			{Path: "/usr/local/etc/haproxy/server.pem", Content: slices.Concat(pair.Certificate, pair.Key)},
			{Path: loadbalancer.Path, Content: fmt.Appendf(nil, backendConfig, name)},
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	state, err := h.engine.Inspect(h.t.Context(), h.cluster+"-"+name)
	if err != nil || state.IPv4 == "" {
		h.t.Fatalf("%+v, error %v", state, err)
	}
	m := newMachine(name, state.IPv4)
	m.Labels["cluster.x-k8s.io/cluster-name"] = h.cluster
	if err := h.Create(h.t.Context(), m); err != nil {
		h.t.Fatal(err)
	}
	return m
}

// newHTTPClient returns a client with connections of its own. With keep, it reuses them.
func newHTTPClient(keep bool) *http.Client {
	return &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{DisableKeepAlives: !keep, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
}

// ask returns the name of the machine that responds.
func (h *haproxy) ask(c *http.Client) (string, error) {
	at := h.read().Spec.ControlPlaneEndpoint
	response, err := c.Get("https://" + net.JoinHostPort(at.Host, fmt.Sprint(at.Port)) + "/")
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// eventually asks over new connections until a machine responds. Meanwhile the controller runs, as it does until HAProxy has started.
func (h *haproxy) eventually(name string) {
	h.t.Helper()
	var got string
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if got, err = h.ask(newHTTPClient(false)); err == nil && got == name {
			return
		}
		h.must()
	}
	h.t.Fatalf("machine %s does not respond, but %q, error %v", name, got, err)
}

// TestHAProxy runs real load balancers: connections survive when machines come and go, and no new connection fails.
func TestHAProxy(t *testing.T) {
	h := newHAProxy(t)
	h.must()
	first := h.backend("one")
	h.must()
	h.eventually("one")

	kept := newHTTPClient(true) // It keeps one connection to the first machine.
	if got, err := h.ask(kept); err != nil || got != "one" {
		t.Fatalf("%q, error %v", got, err)
	}
	var asked atomic.Int64
	var wrong sync.Map
	ctx, stop := context.WithCancel(t.Context())
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for ctx.Err() == nil {
				if _, err := h.ask(newHTTPClient(false)); err != nil {
					wrong.Store(err.Error(), true)
				}
				asked.Add(1)
			}
		})
	}
	h.backend("two")
	h.must()
	h.eventually("two")
	if err := h.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	h.must()
	before := asked.Load()
	for asked.Load() < before+100 {
		time.Sleep(time.Millisecond)
	}
	for range 20 {
		if got, err := h.ask(newHTTPClient(false)); err != nil || got != "two" {
			t.Errorf("a new connection leads to %q, error %v", got, err)
		}
	}
	if got, err := h.ask(kept); err != nil || got != "one" {
		t.Errorf("the connection to the leaving machine leads to %q, error %v", got, err)
	}
	stop()
	users.Wait()
	wrong.Range(func(text, _ any) bool {
		t.Errorf("a request failed: %v", text)
		return true
	})
	t.Logf("%d connections", asked.Load())
	if err := h.Delete(t.Context(), h.read()); err != nil {
		t.Fatal(err)
	}
	h.must()
	if _, err := h.engine.Inspect(t.Context(), identity.LoadBalancerContainer(h.cluster)); !engine.IsNotFound(err) {
		t.Errorf("the load balancer is left: %v", err)
	}
}

// TestHAProxyValidates checks that HAProxy rejects a configuration of a user, and continues with the previous one.
func TestHAProxyValidates(t *testing.T) {
	h := newHAProxy(t)
	h.backendNetwork()
	h.backend("one")
	h.must()
	h.eventually("one")
	template := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "haproxy"}, Data: map[string]string{"value": "nonsense\n"}}
	if err := h.Create(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	update(h.world, h.read(), func(o *dockerv1.DockerCluster) {
		o.Spec.LoadBalancer.CustomHAProxyConfigTemplateRef = &corev1.LocalObjectReference{Name: "haproxy"}
	})
	if err := h.reconcile(); err == nil {
		t.Error("HAProxy accepts nonsense")
	} else {
		t.Log(err)
	}
	h.eventually("one")
}

// backendNetwork creates the network before the load balancer does.
func (h *haproxy) backendNetwork() {
	h.t.Helper()
	if err := h.engine.EnsureNetwork(h.t.Context(), identity.Network); err != nil {
		h.t.Fatal(err)
	}
}
