package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/internal/pki"
)

// program is a manager under measurement.
type program struct {
	name, component string
	gates           string
	cmd             *exec.Cmd
	profiler        int // the port of its profiles
}

func programs() []*program {
	return []*program{
		{name: "cluster-api-controller", component: "core", gates: "ClusterTopology=true"},
		{name: "kubeadm-bootstrap-controller", component: "bootstrap-kubeadm"},
		{name: "kubeadm-control-plane-controller", component: "control-plane-kubeadm", gates: "ClusterTopology=true"},
		{name: "capim-manager", component: "infrastructure-in-memory"},
	}
}

// world is an API server and the managers, each a process.
type world struct {
	root, dir  string
	kubeconfig string
	config     *rest.Config
	client     client.Client
	server     *exec.Cmd
	managers   []*program
}

// startWorld starts everything and waits until a class can be used.
func startWorld(ctx context.Context, root, dir string) (*world, error) {
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "bench-"); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	w := &world{root: root, dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"), managers: programs()}
	if err := w.start(ctx); err != nil {
		w.stop()
		return nil, fmt.Errorf("%w (logs are in %s)", err, dir)
	}
	return w, nil
}

func (w *world) start(ctx context.Context) error {
	var err error
	w.server, err = w.spawn("apiserver", "capi", "serve", "--components=false", "--unsafe-no-fsync",
		"--data-dir", filepath.Join(w.dir, "data"), "--secure-port", "0", "--kubeconfig", w.kubeconfig)
	if err != nil {
		return err
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	ca, err := pki.NewAuthority(pki.ECDSA, time.Now())
	if err != nil {
		return err
	}
	trusted, err := ca.PEM()
	if err != nil {
		return err
	}
	for _, p := range w.managers {
		port, err := freePort()
		if err != nil {
			return err
		}
		if err := w.install(ctx, p.component, port, trusted.Certificate); err != nil {
			return err
		}
		if err := w.launch(p, port, ca); err != nil {
			return err
		}
	}
	return w.class(ctx)
}

// connect waits for the API server.
func (w *world) connect(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
		if err != nil {
			return false, nil
		}
		config.QPS = -1
		w.config = config
		if w.client, err = client.New(config, client.Options{}); err != nil {
			return false, nil
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("v1")
		list.SetKind("NamespaceList")
		return w.client.List(ctx, list) == nil, nil
	})
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("a TCP listener without TCP address")
	}
	return address.Port, nil
}

// install applies a component's CRDs and its webhooks, which call the manager on loopback.
func (w *world) install(ctx context.Context, component string, port int, ca []byte) error {
	for _, kind := range []string{"crd", "webhook"} {
		files, err := filepath.Glob(filepath.Join(w.root, "config", component, kind, "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			objects, err := readObjects(file)
			if err != nil {
				return err
			}
			for _, o := range objects {
				if kind == "webhook" {
					o.SetName(component + "-" + o.GetName())
					callLoopback(o, port, ca)
				}
				if err := w.client.Create(ctx, o); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
		}
	}
	return nil
}

func callLoopback(o *unstructured.Unstructured, port int, ca []byte) {
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, w := range webhooks {
		webhook, ok := w.(map[string]any)
		if !ok {
			continue
		}
		path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		webhook["clientConfig"] = map[string]any{
			"url":      fmt.Sprintf("https://127.0.0.1:%d%s", port, path),
			"caBundle": base64.StdEncoding.EncodeToString(ca),
		}
	}
	_ = unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")
}

// launch starts a manager.
func (w *world) launch(p *program, port int, ca *pki.Authority) error {
	dir := filepath.Join(w.dir, p.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	pair, err := ca.Issue(pki.Request{
		CommonName: p.name, DNSNames: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Validity: 24 * time.Hour,
	}, time.Now())
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	if p.profiler, err = freePort(); err != nil {
		return err
	}
	args := []string{
		fmt.Sprintf("--profiler-address=127.0.0.1:%d", p.profiler),
		"--kubeconfig", w.kubeconfig, "--webhook-cert-dir", dir, fmt.Sprintf("--webhook-port=%d", port),
		"--health-addr=127.0.0.1:0", "--diagnostics-address=127.0.0.1:0", "--insecure-diagnostics",
		"--kube-api-qps=500", "--kube-api-burst=500",
	}
	if p.gates != "" {
		args = append(args, "--feature-gates="+p.gates)
	}
	p.cmd, err = w.spawn(p.name, p.name, args...)
	return err
}

// spawn starts a program of bin/ with a log file.
func (w *world) spawn(logName, binary string, args ...string) (*exec.Cmd, error) {
	log, err := os.Create(filepath.Join(w.dir, logName+".log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(w.root, "bin", binary), args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w: build it with make managers bin/capi", binary, err)
	}
	return cmd, nil
}

// class creates the ClusterClass of the in-memory quick start, with instant start-up.
func (w *world) class(ctx context.Context) error {
	objects, err := readObjects(filepath.Join(w.root, "test", "bench", "class.yaml"))
	if err != nil {
		return err
	}
	for _, o := range objects {
		o.SetNamespace("default")
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := w.client.Create(ctx, o.DeepCopy())
			return err == nil || apierrors.IsAlreadyExists(err), nil
		})
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// stop ends every process that was started.
func (w *world) stop() {
	for _, p := range w.managers {
		end(p.cmd)
	}
	end(w.server)
}

func end(cmd *exec.Cmd) {
	if cmd == nil || cmd.Process == nil {
		return
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
}

func readObjects(file string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, document := range bytes.Split(raw, []byte("\n---")) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(string(document), "---")), &o.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
	return out, nil
}
