package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// clusterIPIndex finds Services by their addresses.
	clusterIPIndex = "spec.clusterIPs"
	// connectTimeout is how long a call waits for a component that is starting or being replaced. It is below the default
	// timeout of a webhook call, ten seconds.
	connectTimeout = 8 * time.Second
	// successorPoll is how often a call checks whether a stopped component has been replaced.
	successorPoll = 20 * time.Millisecond
)

// proxy handles the API server's CONNECT requests. The API server resolves a Service to its ClusterIP and connects to
// that address; the proxy hands the API server's socket to the listener of the component behind the Service, so that no
// data is copied.
type proxy struct {
	host     *host
	listener net.Listener
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *proxy) NeedLeaderElection() bool { return false }

// Start serves until the context ends. It implements manager.Runnable.
func (p *proxy) Start(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = p.listener.Close() })
	defer stop()
	for {
		conn, err := p.listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept the API server's calls to Services: %w", err)
		}
		go p.serve(ctx, conn)
	}
}

// serve handles one CONNECT request.
func (p *proxy) serve(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	_ = conn.SetDeadline(time.Now().Add(connectTimeout))
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil || request.Method != http.MethodConnect {
		_ = conn.Close()
		return
	}
	if err := p.connect(ctx, request.URL.Host, conn); err != nil {
		p.host.Logger.V(1).Info("Call to a Service failed", "address", request.URL.Host, "reason", err.Error())
		fmt.Fprintf(conn, "HTTP/1.1 503 %s\r\n\r\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		_ = conn.Close()
	}
}

// connect connects conn to the address.
func (p *proxy) connect(ctx context.Context, address string, conn net.Conn) error {
	hostname, portText, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	service, err := p.service(ctx, hostname)
	if err != nil {
		return err
	}
	if service == nil {
		return forward(ctx, address, conn) // not a Service of this cluster: an ExternalName, or a Node's address
	}
	if err := p.host.handTo(ctx, service, int32(port), conn); err != nil {
		return err
	}
	return answer(conn)
}

// handTo hands conn to a component behind a port of a Service.
func (h *host) handTo(ctx context.Context, service *corev1.Service, port int32, conn net.Conn) error {
	for {
		target, name, err := h.target(ctx, service, port)
		if err != nil {
			return err
		}
		if target != nil {
			err := hand(ctx, target, name, conn)
			if !errors.Is(err, errStopping) {
				return err
			}
		}
		// The component is being started or replaced.
		select {
		case <-ctx.Done():
			return fmt.Errorf("no component is running for Service %s/%s", service.Namespace, service.Name)
		case <-h.Clock.After(successorPoll):
		}
	}
}

// hand passes conn itself to the component's listener. That is safe: in TLS the client sends first, and the API server
// sends nothing before the response, so nothing has been read ahead.
func hand(ctx context.Context, target *instance, port string, conn net.Conn) error {
	_ = conn.SetDeadline(time.Time{}) // the deadline was for connecting
	err := target.listeners.deliver(ctx, port, conn, target.stopping)
	switch {
	case errors.Is(err, errStopping):
		return err
	case err != nil:
		return fmt.Errorf("%s is not listening on port %q: %s", target.describe(), port, target.observe().message)
	}
	return nil
}

// answer sends the response to the CONNECT request.
func answer(conn net.Conn) error {
	_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	return err
}

// service finds the Service with an address. A new Service may not be in the cache yet.
func (p *proxy) service(ctx context.Context, ip string) (*corev1.Service, error) {
	if net.ParseIP(ip) == nil {
		return nil, nil
	}
	var cached corev1.ServiceList
	if err := p.host.client.List(ctx, &cached, client.MatchingFields{clusterIPIndex: ip}); err != nil {
		return nil, fmt.Errorf("find the Service with address %s: %w", ip, err)
	}
	if len(cached.Items) > 0 {
		return &cached.Items[0], nil
	}
	var live corev1.ServiceList
	if err := p.host.live.List(ctx, &live); err != nil {
		return nil, fmt.Errorf("find the Service with address %s: %w", ip, err)
	}
	for i := range live.Items {
		if slices.Contains(clusterIPs(&live.Items[i]), ip) {
			return &live.Items[i], nil
		}
	}
	return nil, nil
}

// target finds the instance behind a Service's port, and the name of the container port. It returns no instance if one is
// about to start.
func (h *host) target(ctx context.Context, s *corev1.Service, port int32) (*instance, string, error) {
	at := slices.IndexFunc(s.Spec.Ports, func(listed corev1.ServicePort) bool { return listed.Port == port })
	if at < 0 || len(s.Spec.Selector) == 0 {
		return nil, "", fmt.Errorf("Service %s/%s has no port %d, or no selector", s.Namespace, s.Name, port)
	}
	selector := labels.SelectorFromSet(s.Spec.Selector)
	if found := h.endpoint(s.Namespace, selector); found != nil {
		return found, portName(found.plan.container, s.Spec.Ports[at].TargetPort), nil
	}
	var deployments appsv1.DeploymentList
	if err := h.client.List(ctx, &deployments, client.InNamespace(s.Namespace)); err != nil {
		return nil, "", fmt.Errorf("find the Deployment of Service %s/%s: %w", s.Namespace, s.Name, err)
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if selector.Matches(labels.Set(d.Spec.Template.Labels)) && ptr.Deref(d.Spec.Replicas, 1) > 0 {
			_, err := planFor(d, h.Programs)
			return nil, "", err
		}
	}
	return nil, "", fmt.Errorf("no Deployment matches the selector of Service %s/%s", s.Namespace, s.Name)
}

// endpoint returns the instance that serves a selector: the newest that is ready. If none is, it returns the newest that is
// starting, because components may need their own webhooks to become ready, or nil.
func (h *host) endpoint(namespace string, selector labels.Selector) *instance {
	h.mu.Lock()
	defer h.mu.Unlock()
	var starting *instance
	for key, instances := range h.instances {
		for _, i := range slices.Backward(instances) {
			m := i.member()
			if key.Namespace != namespace || m.stopping || !selector.Matches(labels.Set(i.plan.pod.Labels)) {
				continue
			}
			if m.ready {
				return i
			}
			if starting == nil {
				starting = i
			}
		}
	}
	return starting
}

// forward copies data between conn and an external address, until both sides are done.
func forward(ctx context.Context, address string, conn net.Conn) error {
	var dialer net.Dialer
	clients, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Time{}) // the deadline was for connecting
	if err := answer(conn); err != nil {
		return errors.Join(err, clients.Close())
	}
	go func() {
		_, _ = io.Copy(clients, conn)
		_ = clients.Close()
	}()
	go func() {
		_, _ = io.Copy(conn, clients)
		_ = conn.Close()
	}()
	return nil
}

// clusterIPs lists the addresses of a Service, for the cache's index.
func clusterIPs(object client.Object) []string {
	service, ok := object.(*corev1.Service)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(service.Spec.ClusterIPs), func(ip string) bool { return ip == "" || ip == corev1.ClusterIPNone })
}
