package command_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"sigs.k8s.io/cluster-api/standalone/internal/command"
)

// asProgram makes the test binary behave as the program, so that tests can kill it.
const asProgram = "CAPI_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	root := command.New(nil)
	root.SetArgs(os.Args[1:])
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the deferred stop changes nothing for a process that ends
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
	// The client of before still works: same address, same CA, same credentials.
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
	if took := time.Since(began); took > 5*time.Second { // It takes little more than one; etcd left to itself would take seven.
		t.Errorf("stopping took %s", took)
	}
	if _, err := os.Stat(filepath.Join(dir, "run")); !os.IsNotExist(err) {
		t.Errorf("the sockets should be gone: %v", err)
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
		// Its socket is there when etcd starts, well before the API server is ready.
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

func TestSecondInstanceAndTakenPort(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	running := serve(t, "--data-dir", dir, "--unsafe-no-fsync", "--components=false")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	remembering := t.TempDir()
	if err := os.WriteFile(filepath.Join(remembering, "secure-port"), []byte(port+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		reason string
		args   []string
		want   string
	}{
		{
			reason: "one directory belongs to one process",
			args:   []string{"--data-dir", dir},
			want: "data directory " + dir + " is in use by another capi serve (process " + strconv.Itoa(running.cmd.Process.Pid) +
				"): stop that one, or choose another directory with --data-dir",
		},
		{
			reason: "a taken port is named together with the flag",
			args:   []string{"--data-dir", other, "--secure-port", port},
			want:   "port " + port + " on 127.0.0.1 is taken by another program: give another one with --secure-port, or 0 for a free one",
		},
		{
			reason: "a remembered port that is taken now is named, too",
			args:   []string{"--data-dir", remembering},
			want:   "port " + port + " on 127.0.0.1, which this cluster used before, is taken by another program: stop that one, or give another port with --secure-port",
		},
		{
			reason: "an address that is not this machine's is named together with the flags",
			args:   []string{"--data-dir", other, "--bind-address", "192.0.2.1"},
			want:   "listening for the API server (--bind-address, --secure-port): listen tcp 192.0.2.1:0: bind: cannot assign requested address",
		},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			cmd := program(t, append([]string{"serve"}, test.args...)...)
			cmd.Stderr = nil
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatal("it should have failed")
			}
			if got := strings.TrimSpace(string(out)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	if _, err := client(t, filepath.Join(dir, "kubeconfig")).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("the first instance is none the worse for it: %v", err)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	for _, cmd := range append(command.New(nil).Commands(), command.New(nil)) {
		if cmd.Example == "" || cmd.Short == "" {
			t.Errorf("%s has no example or no description", cmd.CommandPath())
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	root := command.New(nil)
	root.SetArgs([]string{"version"})
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^capi v.* \(commit .*\), Kubernetes v1\.\d+\.\d+\n$`).MatchString(out.String()) {
		t.Errorf("it printed %q", out.String())
	}
}
