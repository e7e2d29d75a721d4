package members

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

const (
	// tick is the interval of requests to etcd when nothing changes, pace the minimum interval.
	tick = time.Second
	pace = 100 * time.Millisecond
	// answerTime is the timeout of a request.
	answerTime = 2 * time.Second
)

// Options select the Cluster.
type Options struct {
	// Recorder has the state of the management cluster.
	Recorder *history.Recorder
	// Namespace and Cluster name the Cluster.
	Namespace, Cluster string
	// Exists reports whether a machine's infrastructure exists, without a cache.
	Exists func(ctx context.Context, machine string) (bool, error)
}

// Watcher takes samples until it is stopped.
type Watcher struct {
	options Options
	stop    context.CancelFunc
	done    chan struct{}

	samples []Sample
	conns   map[string]*grpc.ClientConn
	owner   string // the kubeconfig that the connections were made with
}

// Watch starts taking samples.
func Watch(ctx context.Context, o Options) *Watcher {
	ctx, stop := context.WithCancel(ctx)
	w := &Watcher{options: o, stop: stop, done: make(chan struct{}), conns: map[string]*grpc.ClientConn{}}
	go w.run(ctx)
	return w
}

// Stop takes a last sample and returns all samples in order. It may be called more than once.
func (w *Watcher) Stop() []Sample {
	w.stop()
	<-w.done
	return w.samples
}

func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	defer w.disconnect()
	for ctx.Err() == nil {
		now, changed := w.options.Recorder.Now(w.options.Namespace)
		if s, err := w.ask(ctx, now); err == nil {
			w.samples = append(w.samples, s)
		}
		wait(ctx, nil, pace)
		wait(ctx, changed, tick)
	}
	now, _ := w.options.Recorder.Now(w.options.Namespace)
	if s, err := w.ask(context.WithoutCancel(ctx), now); err == nil {
		w.samples = append(w.samples, s)
	}
}

// wait returns when changed is closed, after d, or when the context ends.
func wait(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-changed:
	case <-time.After(d):
	}
}

// ask returns a sample from the first machine that responds.
func (w *Watcher) ask(ctx context.Context, now history.State) (Sample, error) {
	machines := w.controlPlane(now)
	if err := w.prepare(now); err != nil {
		return Sample{}, err
	}
	for _, machine := range machines {
		s, err := w.askOne(ctx, now, machine)
		if err != nil {
			continue
		}
		s.Over = over(now)
		if slices.ContainsFunc(s.Members, func(member string) bool { return !slices.Contains(machines, member) }) {
			return w.confirm(ctx, now, s)
		}
		return s, nil
	}
	return Sample{}, errors.New("no member responds")
}

// confirm finds the members whose machines are gone. The record may lack new machines, so confirm reads from the API server,
// and a member may have been removed meanwhile, so it then queries etcd again.
func (w *Watcher) confirm(ctx context.Context, now history.State, first Sample) (Sample, error) {
	var gone []string
	for _, member := range first.Members {
		if exists, err := w.options.Exists(ctx, member); err == nil && !exists {
			gone = append(gone, member)
		}
	}
	second, err := w.askOne(ctx, now, first.Asked)
	if err != nil {
		return first, nil // The first sample is valid, but members that are gone are unconfirmed.
	}
	second.Over = first.Over
	second.Gone = slices.DeleteFunc(gone, func(member string) bool { return !slices.Contains(second.Members, member) })
	return second, nil
}

// controlPlane returns the names of the Cluster's control plane machines whose infrastructure exists.
func (w *Watcher) controlPlane(now history.State) []string {
	var names []string
	for _, m := range now.Of("Machine") {
		if m.GetLabels()[clusterv1.ClusterNameLabel] != w.options.Cluster {
			continue
		}
		_, is := m.GetLabels()[clusterv1.MachineControlPlaneLabel]
		if is && now[history.Key{Kind: "InMemoryMachine", Name: m.GetName()}] != nil {
			names = append(names, m.GetName())
		}
	}
	return names
}

// over reports whether the whole control plane is being deleted.
func over(now history.State) bool {
	for _, k := range now.Of("KubeadmControlPlane") {
		return k.GetDeletionTimestamp() != nil
	}
	return true
}

func (w *Watcher) askOne(ctx context.Context, now history.State, machine string) (Sample, error) {
	conn, err := w.connection(now, machine)
	if err != nil {
		return Sample{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := etcdserverpb.NewClusterClient(conn).MemberList(ctx, &etcdserverpb.MemberListRequest{})
	if err != nil {
		_ = conn.Close() // The address may be another machine's by now.
		delete(w.conns, machine)
		return Sample{}, err
	}
	s := Sample{At: time.Now(), Asked: machine, ClusterID: answer.GetHeader().GetClusterId()}
	for _, m := range answer.GetMembers() {
		s.Members = append(s.Members, m.GetName())
	}
	slices.Sort(s.Members)
	return s, nil
}

// prepare drops the connections to a previous cluster of the same name.
func (w *Watcher) prepare(now history.State) error {
	kubeconfig, err := secret(now, pki.SecretName(w.options.Cluster, pki.Kubeconfig), pki.KubeconfigKey)
	if err != nil {
		return err
	}
	if w.owner != string(kubeconfig) {
		w.disconnect()
		w.owner = string(kubeconfig)
	}
	return nil
}

func (w *Watcher) disconnect() {
	for machine, conn := range w.conns {
		_ = conn.Close() // No longer needed.
		delete(w.conns, machine)
	}
}

func (w *Watcher) connection(now history.State, machine string) (*grpc.ClientConn, error) {
	if conn := w.conns[machine]; conn != nil {
		return conn, nil
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(w.owner))
	if err != nil {
		return nil, err
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	identity, err := w.identity(now, machine)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///etcd-"+machine, grpc.WithTransportCredentials(credentials.NewTLS(identity)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", host.Host)
		}))
	if err != nil {
		return nil, err
	}
	w.conns[machine] = conn
	return conn, nil
}

// identity returns a TLS configuration with a client certificate that etcd's CA signed.
func (w *Watcher) identity(now history.State, machine string) (*tls.Config, error) {
	name := pki.SecretName(w.options.Cluster, pki.EtcdCA)
	certificate, err := secret(now, name, pki.CertificateKey)
	if err != nil {
		return nil, err
	}
	key, err := secret(now, name, pki.PrivateKeyKey)
	if err != nil {
		return nil, err
	}
	authority, err := pki.ParseCA(certificate, key)
	if err != nil {
		return nil, err
	}
	pair, err := authority.Issue(pki.Request{CommonName: "fault", Validity: time.Hour}, time.Now())
	if err != nil {
		return nil, err
	}
	client, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate) // Several, while the CA is rotated: members have certificates of each.
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: "etcd-" + machine, RootCAs: roots, Certificates: []tls.Certificate{client},
	}, nil
}

func secret(now history.State, name, key string) ([]byte, error) {
	o := now[history.Key{Kind: "Secret", Name: name}]
	if o == nil {
		return nil, fmt.Errorf("Secret %s does not exist", name)
	}
	text, _, _ := unstructured.NestedString(o.Object, "data", key)
	return base64.StdEncoding.DecodeString(text)
}
