package command_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sigs.k8s.io/cluster-api/standalone/internal/command"
	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
)

// asProgram makes the test binary behave as the program, so that tests can kill it.
const asProgram = "CAPI_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	if err := command.New(programs(), nil).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is a running `capi serve`.
type process struct {
	cmd  *exec.Cmd
	line string // what it printed when it was ready
}

// program prepares the program with arguments.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}

// serve starts the program and waits until it is ready.
func serve(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := program(t, append([]string{"serve"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("capi serve ended before it was ready: %v, %v", err, cmd.Wait())
	}
	return &process{cmd: cmd, line: line}
}

// client reads the kubeconfig as a user's tools do.
func client(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDataOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mgmt")
	kubeconfig := filepath.Join(t.TempDir(), "sub", "kubeconfig")
	args := []string{"--data-dir", dir, "--kubeconfig", kubeconfig} // with fsync: this is about keeping data
	first := serve(t, args...)
	want := regexp.MustCompile(`^capi is ready: https://127\.0\.0\.1:\d+, kubeconfig ` + regexp.QuoteMeta(kubeconfig) +
		`; stop it with Ctrl-C or: kill ` + strconv.Itoa(first.cmd.Process.Pid) + "\n$")
	if !want.MatchString(first.line) {
		t.Errorf("it printed %q, want %s", first.line, want)
	}
	before := client(t, kubeconfig)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string]string{"k": "v"}}
	kept, err := before.CoreV1().ConfigMaps("default").Create(t.Context(), kept, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()

	second := serve(t, args...)
	// The previous client still works: same address, same CA, same credentials.
	got, err := before.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.UID != kept.UID || got.ResourceVersion != kept.ResourceVersion || got.Data["k"] != "v" {
		t.Errorf("after a kill the object is %v, it was %v", got, kept)
	}
	began := time.Now()
	if err := second.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.cmd.Wait(); err != nil {
		t.Errorf("SIGTERM should end it without an error: %v", err)
	}
	if took := time.Since(began); took > 7*time.Second { // It takes little more than one; by default, etcd adds seven.
		t.Errorf("stopping took %s", took)
	}
	if _, err := os.Stat(filepath.Join(dir, "run")); !os.IsNotExist(err) {
		t.Errorf("the sockets should be deleted: %v", err)
	}
}

func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"the first time", "with data"} {
		cmd := program(t, "serve", "--data-dir", dir, "--unsafe-no-fsync")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, nil // The client of etcd complains there about what it cannot finish.
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Its socket exists when etcd starts, long before the API server is ready.
		for socket := filepath.Join(dir, "run", strconv.Itoa(cmd.Process.Pid), "etcd.sock"); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(socket); err == nil || t.Context().Err() != nil {
				break
			}
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || out.Len() > 0 {
			t.Errorf("%s: a stop that was asked for is no error: %v, and it was not ready: %q", name, err, out.String())
		}
	}
	serve(t, "--data-dir", dir, "--unsafe-no-fsync")
}

func TestASecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	running := serve(t, "--data-dir", dir, "--unsafe-no-fsync")
	upload(t, filepath.Join(dir, "kubeconfig")) // An orderly stop would wait for it.
	if err := running.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	// A stop begins by closing the port.
	for address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(running.line); t.Context().Err() == nil; time.Sleep(time.Millisecond) {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		_ = connection.Close()
	}
	if err := running.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = running.cmd.Wait()
	if status, ok := running.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGINT {
		t.Errorf("the second signal should end it, it ended with %v", running.cmd.ProcessState)
	}
	serve(t, "--data-dir", dir, "--unsafe-no-fsync") // As after a kill.
}

// upload starts a request that lasts until the end of the test, and returns when the API server has received it.
func upload(t *testing.T, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	body, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+"/api/v1/namespaces/default/configmaps", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Expect", "100-continue") // The body is sent when the server begins to read it.
	transport := &http.Transport{TLSClientConfig: trust, ExpectContinueTimeout: time.Hour}
	t.Cleanup(transport.CloseIdleConnections)
	go func() {
		if response, err := transport.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	if _, err := writer.Write([]byte("{")); err != nil {
		t.Fatal(err)
	}
}

func TestKubectlEndsAtTheFirstSignal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, "--data-dir", dir, "--unsafe-no-fsync", "--components=false")
	// A raw watch, as `get --watch` listens to signals itself, at a time that is not visible to others.
	cmd := program(t, "kubectl", "--kubeconfig", filepath.Join(dir, "kubeconfig"), "get", "--raw", "/api/v1/namespaces?watch=true")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer deadline.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("kubectl printed %q: %v", line, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}

func TestSeveralOnOneMachine(t *testing.T) {
	t.Parallel()
	clients := make([]kubernetes.Interface, 3)
	for i := range clients {
		dir := t.TempDir()
		serve(t, "--data-dir", dir, "--unsafe-no-fsync")
		clients[i] = client(t, filepath.Join(dir, "kubeconfig"))
		mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-" + strconv.Itoa(i)}}
		if _, err := clients[i].CoreV1().ConfigMaps("default").Create(t.Context(), mine, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range clients {
		found, err := c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(found.Items) != 1 || found.Items[0].Name != "of-"+strconv.Itoa(i) {
			t.Errorf("each has its own data: %d has %v, %v", i, found, err)
		}
	}
}

// refusals are invalid inputs that `capi serve` rejects with one line. running is a data directory in use.
func refusals(t *testing.T, running string, process int) []refusal {
	t.Helper()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	file := written(t, "file", "no folder")
	remembering, newer, fresh := written(t, "secure-port", port+"\n"), written(t, "kubernetes-version", "v1.999.1\n"), t.TempDir()
	foreign := written(t, "foreign", "apiVersion: v1\nkind: Config\nclusters: [{name: production, cluster: {server: https://example.com}}]\n")
	return []refusal{
		{
			"a directory is locked by one process", []string{"--data-dir", running},
			"data directory " + running + " is in use by another capi serve (process " + strconv.Itoa(process) +
				"): stop it, or choose another directory with --data-dir",
		},
		{"--data-dir must not be empty", []string{"--data-dir", ""}, "--data-dir is empty"},
		{
			"an error about the directory names the flag", []string{"--data-dir", file},
			"cannot create data directory " + file + ", choose another one with --data-dir: mkdir " + file + ": not a directory",
		},
		{
			"data of a newer version is rejected", []string{"--data-dir", filepath.Dir(newer)},
			"data directory " + filepath.Dir(newer) + " was written by a newer capi with Kubernetes v1.999.1, but this one has " +
				controlplane.Version() + ": use the newer capi, or choose another directory with --data-dir",
		},
		{
			"an error about a port in use names the flag", []string{"--data-dir", fresh, "--secure-port", port},
			"port " + port + " on 127.0.0.1 is in use by another program: use another one with --secure-port, or 0 for a free one",
		},
		{
			"so does one about the previous port", []string{"--data-dir", filepath.Dir(remembering)},
			"port " + port + " on 127.0.0.1, which this cluster used before, is in use by another program: stop it, or use another port with --secure-port",
		},
		{
			"an invalid port", []string{"--data-dir", fresh, "--secure-port", "70000"},
			"--secure-port is 70000: use a port up to 65535, or 0 for the previous or a free one",
		},
		{
			"an error about a foreign address names the flags", []string{"--data-dir", fresh, "--bind-address", "192.0.2.1"},
			"listen for the API server (--bind-address, --secure-port): listen tcp 192.0.2.1:0: bind: cannot assign requested address",
		},
		{
			"an unwritable kubeconfig is an error before anything starts", []string{"--data-dir", fresh, "--kubeconfig", file + "/kubeconfig"},
			"cannot write the kubeconfig to " + file + "/kubeconfig, choose another file with --kubeconfig: mkdir " + file + ": not a directory",
		},
		{
			"a kubeconfig of other clusters is not overwritten", []string{"--data-dir", fresh, "--kubeconfig", foreign},
			foreign + ` contains other clusters ("production"), and would be overwritten: choose another file with --kubeconfig`,
		},
		{"an unknown flag", []string{"--secure-prt", "1"}, "unknown flag: --secure-prt: see capi serve --help"},
		{
			"a flag of a wrong type", []string{"--bind-address", "here"},
			`invalid argument "here" for "--bind-address" flag: failed to parse IP: "here": see capi serve --help`,
		},
		{"too many arguments", []string{"now"}, `unknown command "now" for "capi serve"`},
	}
}

type refusal struct {
	reason string
	args   []string
	want   string
}

// written creates a file in its own folder and returns its path.
func written(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRejections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	running := serve(t, "--data-dir", dir, "--unsafe-no-fsync", "--components=false")
	for _, test := range refusals(t, dir, running.cmd.Process.Pid) {
		t.Run(test.reason, func(t *testing.T) {
			cmd := program(t, append([]string{"serve"}, test.args...)...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err == nil {
				t.Fatal("it should have failed")
			}
			if stderr.String() != test.want+"\n" || stdout.Len() > 0 {
				t.Errorf("got  %s(and on standard output %q)\nwant %s", stderr.String(), stdout.String(), test.want)
			}
			if at := slices.Index(test.args, "--data-dir"); at >= 0 && test.args[at+1] != dir {
				for _, part := range []string{"etcd", "pki", "kubeconfig", "run"} {
					if _, err := os.Stat(filepath.Join(test.args[at+1], part)); err == nil {
						t.Errorf("it left %s half done", part)
					}
				}
			}
		})
	}
	if _, err := client(t, filepath.Join(dir, "kubeconfig")).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("the first instance is none the worse for it: %v", err)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	for _, cmd := range append(command.New(nil, nil).Commands(), command.New(nil, nil)) {
		if cmd.Example == "" || cmd.Short == "" {
			t.Errorf("%s has no example or no description", cmd.CommandPath())
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	root := command.New(nil, nil)
	root.SetArgs([]string{"version"})
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^capi v.* \(.*go1.*\), Kubernetes v1\.\d+\.\d+\n$`).MatchString(out.String()) {
		t.Errorf("it printed %q", out.String())
	}
}

// The components' metrics are authorized by RBAC.
func TestComponentMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, "--data-dir", dir, "--unsafe-no-fsync")
	admin := client(t, filepath.Join(dir, "kubeconfig"))
	got, err := admin.Discovery().RESTClient().Get().AbsPath("/metrics/components").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(got), "certwatcher_read_certificate_total") {
		t.Errorf("the administrator gets %.200s, %v", got, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate.UserName = "unprivileged"
	other, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Discovery().RESTClient().Get().AbsPath("/metrics/components").DoRaw(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("an unprivileged user gets %v", err)
	}
}
