package journey

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// answerTime is the timeout of requests to workload clusters.
const answerTime = 5 * time.Second

// Workload is the workload cluster. Its clients use the kubeconfig in the management cluster, as users do.
type Workload struct {
	client client.Client
	config *rest.Config
	etcdCA *pki.CA // nil if etcd does not belong to the cluster
	// simulated means that etcd has no address of its own.
	simulated bool
}

// Config returns what a client of the workload cluster needs.
func (w *Workload) Config() *rest.Config { return rest.CopyConfig(w.config) }

// Workload returns the workload cluster, whose control plane must have been initialized.
func (c *Subject) Workload() *Workload {
	c.t.Helper()
	w, err := c.reach(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return w
}

// Reconnect forgets the credentials of the workload cluster, which have changed.
func (c *Subject) Reconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workload = nil
}

func (c *Subject) reach(ctx context.Context) (*Workload, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.workload != nil {
		return c.workload, nil
	}
	kubeconfig, etcd := &corev1.Secret{}, &corev1.Secret{}
	if err := c.Client.Get(ctx, pki.SecretKey(c.Key(), pki.Kubeconfig), kubeconfig); err != nil {
		return nil, fmt.Errorf("connecting to the workload cluster: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig.Data[pki.KubeconfigKey])
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", c.Name, err)
	}
	config.Timeout = answerTime
	w := &Workload{config: config, simulated: c.Tools.Infrastructure == inMemory}
	switch err := c.Client.Get(ctx, pki.SecretKey(c.Key(), pki.EtcdCA), etcd); {
	case err == nil:
		if w.etcdCA, err = pki.CAFrom(etcd); err != nil {
			return nil, fmt.Errorf("etcd CA of %s: %w", c.Name, err)
		}
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("connecting to the workload cluster: %w", err)
	}
	if w.client, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return nil, fmt.Errorf("connecting to the workload cluster: %w", err)
	}
	c.workload = w
	return w, nil
}

// Nodes returns the Nodes, sorted by name.
func (w *Workload) Nodes(ctx context.Context) ([]corev1.Node, error) {
	list := &corev1.NodeList{}
	if err := w.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the Nodes of the workload cluster: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// Members returns the sorted names of the etcd members, from the member on a Node.
func (w *Workload) Members(ctx context.Context, node string) ([]string, error) {
	etcd, err := w.Etcd(ctx, node)
	if err != nil {
		return nil, err
	}
	defer func() { _ = etcd.Close() }()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	list, err := etcd.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the members of etcd on %s: %w", node, err)
	}
	var names []string
	for _, m := range list.Members {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names, nil
}

// Etcd returns a client of the etcd member on a Node, which the caller closes.
func (w *Workload) Etcd(ctx context.Context, node string) (*clientv3.Client, error) {
	pair, err := w.etcdCA.Issue(pki.Request{CommonName: "journey", Validity: time.Hour}, time.Now())
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(w.etcdCA.Certificate)
	config := clientv3.Config{
		Logger:      zap.NewNop(),
		TLS:         &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{certificate}},
		DialTimeout: answerTime,
	}
	if w.simulated {
		err = w.simulatedMember(&config, node)
	} else {
		err = w.realMember(ctx, &config, node)
	}
	if err != nil {
		return nil, err
	}
	etcd, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd on %s: %w", node, err)
	}
	return etcd, nil
}

// simulatedMember connects to a member at the address of the simulated API server. The name is not resolved: it selects the member.
func (w *Workload) simulatedMember(config *clientv3.Config, node string) error {
	host, err := url.Parse(w.config.Host)
	if err != nil {
		return err
	}
	config.Endpoints = []string{"etcd-" + node}
	config.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", host.Host)
	})}
	return nil
}

// realMember connects to a member at the address of its Node.
func (w *Workload) realMember(ctx context.Context, config *clientv3.Config, name string) error {
	node := &corev1.Node{}
	if err := w.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return fmt.Errorf("reading the address of Node %s: %w", name, err)
	}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			config.Endpoints = []string{"https://" + net.JoinHostPort(a.Address, "2379")}
			return nil
		}
	}
	return fmt.Errorf("Node %s has no internal address", name)
}

// WorkloadMatches is a Condition: the workload cluster has exactly one healthy Node for each Machine, and one etcd member for
// each control plane Machine, according to every member.
func (c *Subject) WorkloadMatches(p *Snapshot) error {
	if err := c.NodesMatch(p); err != nil {
		return err
	}
	w, err := c.reach(c.t.Context())
	if err != nil {
		return err
	}
	return c.sameMembers(c.t.Context(), w, p)
}

// NodesMatch is WorkloadMatches without etcd, which may not belong to the cluster.
func (c *Subject) NodesMatch(p *Snapshot) error {
	ctx := c.t.Context()
	w, err := c.reach(ctx)
	if err != nil {
		return err
	}
	nodes, err := w.Nodes(ctx)
	if err != nil {
		return err
	}
	have := map[string]string{}
	for _, n := range nodes {
		have[n.Name] = "not ready"
		if slices.ContainsFunc(n.Status.Conditions, nodeReady) {
			have[n.Name] = n.Spec.ProviderID
		}
	}
	want := map[string]string{}
	for _, m := range p.Machines.Items {
		if m.Status.NodeRef == nil || m.Spec.ProviderID == nil {
			return fmt.Errorf("Machine %s has no Node", m.Name)
		}
		want[m.Status.NodeRef.Name] = *m.Spec.ProviderID
	}
	if diff := gocmp.Diff(want, have); diff != "" {
		return fmt.Errorf("Nodes and their provider IDs (-Machines +workload cluster):\n%s", diff)
	}
	return nil
}

func (c *Subject) sameMembers(ctx context.Context, w *Workload, p *Snapshot) error {
	var want []string
	for _, m := range p.ControlPlane() {
		want = append(want, m.Status.NodeRef.Name)
	}
	slices.Sort(want)
	for _, node := range want {
		members, err := w.Members(ctx, node)
		if err != nil {
			return err
		}
		if diff := gocmp.Diff(want, members); diff != "" {
			return fmt.Errorf("etcd members according to %s (-Machines +members):\n%s", node, diff)
		}
	}
	return nil
}

func nodeReady(c corev1.NodeCondition) bool {
	return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
}

// EtcdIsConsistent samples etcd after every change until the returned function is called: it always has at least least and
// at most most members, each with a Machine.
func (c *Subject) EtcdIsConsistent(least, most int) (still func()) {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	result := make(chan error, 1)
	go func() {
		defer close(result)
		samples := 0
		for ctx.Err() == nil {
			changed := c.changes.next(c.Namespace)
			sampled, err := c.sampleEtcd(ctx, least, most)
			if err != nil {
				result <- err
				return
			}
			if sampled {
				samples++
			}
			select {
			case <-changed:
			case <-time.After(tick):
			case <-ctx.Done():
			}
		}
		if samples == 0 {
			result <- errors.New("etcd was never reachable")
		}
	}()
	return func() {
		c.t.Helper()
		stop()
		if err := <-result; err != nil {
			c.t.Errorf("etcd stays consistent: %v", err)
		}
	}
}

// sampleEtcd queries an available Machine. Errors are not violations: the Machine may be shutting down.
func (c *Subject) sampleEtcd(ctx context.Context, least, most int) (sampled bool, err error) {
	before, err := c.snapshot(ctx)
	if err != nil {
		return false, nil
	}
	w, err := c.reach(ctx)
	if err != nil {
		return false, nil
	}
	for _, m := range before.ControlPlane() {
		if m.Status.NodeRef == nil || !m.DeletionTimestamp.IsZero() {
			continue
		}
		members, err := w.Members(ctx, m.Status.NodeRef.Name)
		if err != nil {
			continue
		}
		after, err := c.snapshot(ctx) // A Machine may have been created meanwhile.
		if err != nil {
			return false, nil
		}
		return true, checkMembers(members, least, most, before, after)
	}
	return false, nil
}

func checkMembers(members []string, least, most int, snapshots ...*Snapshot) error {
	if len(members) < least || len(members) > most {
		return fmt.Errorf("etcd has %d members, want %d to %d: %v", len(members), least, most, members)
	}
	known := map[string]bool{}
	for _, p := range snapshots {
		for _, m := range p.ControlPlane() {
			known[m.Name] = true
		}
	}
	for _, name := range members {
		if name == "" {
			continue // It has been added, and has not started yet.
		}
		if !known[name] {
			return fmt.Errorf("etcd member %s has no Machine", name)
		}
	}
	return nil
}
