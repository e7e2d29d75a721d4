package ssh_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/ssh"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/sshtest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// world is a Host, and who logs in.
type world struct {
	*sshtest.Server
	login ssh.Login
}

func newWorld(t *testing.T) world {
	server := sshtest.Start(t)
	spec := server.Spec()
	return world{server, ssh.Login{Host: &spec, Key: server.PrivateKey}}
}

func (w world) run(t *testing.T, script string, variables map[string]string, stdin string) string {
	t.Helper()
	answer, err := w.login.Run(t.Context(), script, variables, []byte(stdin))
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func starting(claim, command, data string) map[string]string {
	return map[string]string{
		"action": "start", "claim": claim, "command": command, "provider_id": "hosts://ns/h",
		"sum": fmt.Sprintf("%x", sha256.Sum256([]byte(data))),
	}
}

func (w world) start(t *testing.T, claim, command, data string) string {
	t.Helper()
	return w.run(t, ssh.Script, starting(claim, command, data), data)
}

func (w world) state(t *testing.T, claim string) string {
	t.Helper()
	return w.run(t, ssh.Script, map[string]string{"action": "state", "claim": claim}, "")
}

func (w world) reset(t *testing.T, claim, command string) string {
	t.Helper()
	return w.run(t, ssh.Script, map[string]string{"action": "reset", "claim": claim, "command": command}, "")
}

func (w world) eventually(t *testing.T, claim, want string) {
	t.Helper()
	testenv.Eventually(t, "the bootstrap command to end", func() error {
		if got := w.state(t, claim); got != want {
			return fmt.Errorf("it is %q, want %q", got, want)
		}
		return nil
	})
}

// eventuallyReset resets the Host until it answers something else than running.
func (w world) eventuallyReset(t *testing.T, claim, command string) (answer string) {
	t.Helper()
	testenv.Eventually(t, "the reset command to end", func() error {
		if answer = w.reset(t, claim, command); answer == "running" {
			return errors.New("it runs")
		}
		return nil
	})
	return answer
}

// bootstrapping runs a bootstrap command until the test ends.
func (w world) bootstrapping(t *testing.T) {
	t.Helper()
	w.Gate(t)
	w.start(t, "a", `cat "$DIRECTORY/../gate"`, "data")
	testenv.Eventually(t, "the command to run", func() error {
		if w.Read(t, sshtest.State+"/bootstrap.pid") == "" {
			return errors.New("it does not yet")
		}
		return nil
	})
}

func TestBootstrapRunsOnce(t *testing.T) {
	w := newWorld(t)
	open := w.Gate(t)
	if got := w.state(t, "a"); got != "state lost" {
		t.Errorf("before the start, the state is %q", got)
	}
	const command = `echo "$CLAIM $PROVIDER_ID $(cat)" >>"$DIRECTORY/../ran"; cat "$DIRECTORY/../gate"; exit 3`
	// What goes on without a connection must not depend on one: each of these is a new one.
	for range 2 {
		if got := w.start(t, "a", command, "it's data\n"); got != "running" {
			t.Errorf("after a start, the state is %q", got)
		}
	}
	if got := w.start(t, "b", command, "other data"); got != "conflict" {
		t.Errorf("for another claim, the state is %q", got)
	}
	open()
	w.eventually(t, "a", "ended 3")
	if got := w.start(t, "a", command, "it's data\n"); got != "ended 3" {
		t.Errorf("after the end, the state is %q", got)
	}
	if diff := cmp.Diff("a hosts://ns/h it's data\n", w.Read(t, "var/lib/ran")); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
	if data := w.Read(t, sshtest.State+"/data"); data != "" {
		t.Errorf("the data stays on the Host: %q", data)
	}
}

func TestIncompleteDataDoesNotRun(t *testing.T) {
	w := newWorld(t)
	if _, err := w.login.Run(t.Context(), ssh.Script, starting("a", "touch $DIRECTORY/../ran", "all of it"), []byte("half")); err == nil {
		t.Error("half of the data is accepted")
	}
	if got := w.start(t, "a", "exit 0", "all of it"); got != "running" && got != "ended 0" {
		t.Errorf("the next try finds the state %q", got)
	}
	w.eventually(t, "a", "ended 0")
	if _, err := os.Stat(filepath.Join(w.Root, "var/lib/ran")); err == nil {
		t.Error("half of the data was run")
	}
}

func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	w.bootstrapping(t)
	w.run(t, `kill -s KILL -- "-$(cat /var/lib/cluster-api-hosts/bootstrap.pid)"`, nil, "") // as a reboot would
	w.eventually(t, "a", "interrupted")
	if got := w.start(t, "a", "exit 0", "data"); got != "interrupted" {
		t.Errorf("it is started again: %q", got)
	}
}

func TestReset(t *testing.T) {
	tests := []struct {
		reason  string
		before  func(t *testing.T, w world)
		command string
		want    string
		state   string
	}{
		{"nothing ran", func(*testing.T, world) {}, "exit 9", "none", "state lost"},
		{"what ran is reset, and the Host can be used again", func(t *testing.T, w world) {
			w.start(t, "a", "exit 0", "data")
			w.eventually(t, "a", "ended 0")
		}, "exit 0", "reset", "state lost"},
		{"a Host that cannot be reset is not free", func(t *testing.T, w world) {
			w.start(t, "a", "exit 0", "data")
			w.eventually(t, "a", "ended 0")
		}, "exit 9", "failed", "ended 0"},
		{"a reset that failed is tried again", func(t *testing.T, w world) {
			w.start(t, "a", "exit 0", "data")
			w.eventually(t, "a", "ended 0")
			if got := w.eventuallyReset(t, "a", "exit 9"); got != "failed" {
				t.Errorf("the answer is %q", got)
			}
		}, "exit 0", "reset", "state lost"},
		{"another claim's Host is left alone", func(t *testing.T, w world) {
			w.start(t, "b", "exit 0", "data")
			w.eventually(t, "b", "ended 0")
		}, "exit 0", "conflict", "conflict"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t)
			tc.before(t, w)
			if got := w.eventuallyReset(t, "a", tc.command); got != tc.want {
				t.Errorf("the answer is %q, want %q", got, tc.want)
			}
			if got := w.state(t, "a"); got != tc.state {
				t.Errorf("the state is %q, want %q", got, tc.state)
			}
		})
	}
}

func TestResetKills(t *testing.T) {
	w := newWorld(t)
	w.bootstrapping(t)
	if got := w.eventuallyReset(t, "a", "exit 0"); got != "reset" {
		t.Errorf("the answer is %q", got)
	}
	testenv.Eventually(t, "the bootstrap command to be killed", func() error {
		gate, err := os.OpenFile(filepath.Join(w.Root, "var/lib/gate"), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, syscall.ENXIO) {
			return nil // nothing reads it
		}
		return errors.Join(errors.New("it still waits at the gate"), err, gate.Close())
	})
}

// The reset command may take longer than a login.
func TestResetRunsDetached(t *testing.T) {
	w := newWorld(t)
	w.start(t, "a", "exit 0", "data")
	w.eventually(t, "a", "ended 0")
	open := w.Gate(t)
	const command = `echo reset >>"$DIRECTORY/../ran"; cat "$DIRECTORY/../gate"`
	for range 3 {
		if got := w.reset(t, "a", command); got != "running" {
			t.Errorf("while the command runs, the answer is %q", got)
		}
	}
	open()
	if got := w.eventuallyReset(t, "a", command); got != "reset" {
		t.Errorf("after the end, the answer is %q", got)
	}
	if got := w.reset(t, "a", command); got != "none" {
		t.Errorf("a second time, the answer is %q", got)
	}
	if diff := cmp.Diff("reset\n", w.Read(t, "var/lib/ran")); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
	for _, file := range []string{"claim", "bootstrap.log", "bootstrap.command", "reset.log", "reset.command"} {
		if _, err := os.Stat(filepath.Join(w.Root, sshtest.State, file)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", file, err)
		}
	}
}

func (w world) etcd(t *testing.T, uid, command, limit string) string {
	t.Helper()
	return w.run(t, ssh.Script, map[string]string{"action": "etcd", "claim": "a", "uid": uid, "command": command, "limit": limit}, "")
}

func (w world) eventuallyEtcd(t *testing.T, uid, command, limit string) (answer string) {
	t.Helper()
	testenv.Eventually(t, "the command to end", func() error {
		if answer = w.etcd(t, uid, command, limit); answer == "running" {
			return errors.New("it runs")
		}
		return nil
	})
	return answer
}

// A command for the etcd member may take longer than a login.
func TestEtcd(t *testing.T) {
	w := newWorld(t)
	if got := w.etcd(t, "1", "exit 0", "60"); got != "none" {
		t.Errorf("before the bootstrap data has run, the answer is %q", got)
	}
	w.start(t, "a", "exit 0", "data")
	w.eventually(t, "a", "ended 0")
	open := w.Gate(t)
	const waits = `echo one >>"$DIRECTORY/../ran"; cat "$DIRECTORY/../gate"; echo first; echo '{"last": 1}'`
	for range 3 {
		if got := w.etcd(t, "1", waits, "60"); got != "running" {
			t.Errorf("while the command runs, the answer is %q", got)
		}
	}
	if got := w.etcd(t, "2", "echo other", "60"); got != "running" {
		t.Errorf("another command meanwhile is answered %q", got)
	}
	open()
	if got := w.eventuallyEtcd(t, "1", waits, "60"); got != `{"last": 1}` {
		t.Errorf("the answer is %q", got)
	}
	if diff := cmp.Diff("one\n", w.Read(t, "var/lib/ran")); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
	if got := w.eventuallyEtcd(t, "2", "echo other", "60"); got != "other" {
		t.Errorf("the next command is answered %q", got)
	}
	const stays = `sleep 5 >/dev/null & exit 0`
	for range 2 { // what it leaves does not keep the next one from running
		if got := w.eventuallyEtcd(t, "3", stays, "60"); got != "" {
			t.Errorf("a command that prints nothing is answered %q", got)
		}
	}
	const ends = `trap 'echo told to end; exit 1' TERM; sleep 5 >/dev/null & wait`
	if got := w.eventuallyEtcd(t, "4", ends, "0.1"); got != "told to end" {
		t.Errorf("a command that takes too long is answered %q", got)
	}
	w.etcd(t, "5", `echo five >>"$DIRECTORY/../ran"; cat "$DIRECTORY/../gate"`, "60")
	testenv.Eventually(t, "the command to run", func() error {
		if !strings.Contains(w.Read(t, "var/lib/ran"), "five") {
			return errors.New("it does not yet")
		}
		return nil
	})
	if got := w.eventuallyReset(t, "a", "exit 0"); got != "reset" {
		t.Errorf("while a command runs, the reset answers %q", got)
	}
}

// A manager that has lost its leadership, or whose connection was slow, starts the command after another has reset the Host.
func TestReleasedClaimDoesNotStart(t *testing.T) {
	for _, ran := range []bool{true, false} {
		t.Run(fmt.Sprintf("it ran before: %t", ran), func(t *testing.T) {
			w := newWorld(t)
			if ran {
				w.start(t, "a", "exit 0", "data")
				w.eventually(t, "a", "ended 0")
			}
			w.eventuallyReset(t, "a", "exit 0")
			if got := w.start(t, "a", "touch $DIRECTORY/../ran", "data"); got != "conflict" {
				t.Errorf("the answer is %q", got)
			}
			if got := w.start(t, "b", "exit 0", "data"); got != "running" && got != "ended 0" {
				t.Errorf("the next claim finds %q", got)
			}
			w.eventually(t, "b", "ended 0")
			if _, err := os.Stat(filepath.Join(w.Root, "var/lib/ran")); err == nil {
				t.Error("the bootstrap command of a released claim ran")
			}
		})
	}
}

func TestStateIsPrivate(t *testing.T) {
	w := newWorld(t)
	if err := os.Remove(filepath.Join(w.Root, sshtest.State)); err != nil {
		t.Fatal(err)
	}
	w.bootstrapping(t)
	paths, err := filepath.Glob(filepath.Join(w.Root, sshtest.State, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there is no state: %v", err)
	}
	for _, path := range append(paths, filepath.Join(w.Root, sshtest.State)) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("other users may access %s: %s", path, info.Mode())
		}
	}
}

func TestCloudInit(t *testing.T) {
	w := newWorld(t)
	// As cloud-init does, it runs what the seed says.
	w.Program(t, "cloud-init", `echo "$*" >>"`+w.Root+`/calls"; [ "$*" != "modules --mode=final" ] || sh "`+w.Root+`/var/lib/cloud/seed/nocloud/user-data"`)
	data := "mkdir -p " + w.Root + "/run/cluster-api\ntouch " + w.Root + "/run/cluster-api/bootstrap-success.complete\n"
	w.start(t, "a", ssh.CloudInit, data)
	w.eventually(t, "a", "ended 0")
	want := "clean --logs --seed\ninit --local\ninit\nmodules --mode=config\nmodules --mode=final\n"
	if diff := cmp.Diff(want, w.Read(t, "calls")); diff != "" {
		t.Errorf("calls of cloud-init (-want +got):\n%s", diff)
	}
	name, _ := os.Hostname()
	if diff := cmp.Diff("instance-id: a\nlocal-hostname: "+name+"\nprovider_id: hosts://ns/h\n", w.Read(t, "var/lib/cloud/seed/nocloud/meta-data")); diff != "" {
		t.Errorf("meta-data (-want +got):\n%s", diff)
	}
	w.Program(t, "kubeadm", `echo "kubeadm $*" >>"`+w.Root+`/calls"`)
	if got := w.eventuallyReset(t, "a", ssh.KubeadmReset); got != "reset" {
		t.Errorf("the default reset answers %q: %s", got, w.Read(t, sshtest.State+"/reset.log"))
	}
	if diff := cmp.Diff(want+"kubeadm reset --force\nclean --logs --seed\n", w.Read(t, "calls")); diff != "" {
		t.Errorf("calls after the reset (-want +got):\n%s", diff)
	}
}

func TestCloudInitWithoutSuccess(t *testing.T) {
	w := newWorld(t)
	w.Program(t, "cloud-init", "exit 0")
	w.start(t, "a", ssh.CloudInit, "data that does not say that it succeeded")
	w.eventually(t, "a", "ended 1")
}

func TestRefused(t *testing.T) {
	other, silent := newWorld(t), newSilent(t)
	tests := []struct {
		reason string
		change func(l *ssh.Login)
		want   string
	}{
		{"a server with another key", func(l *ssh.Login) { l.Host.HostKeys = []string{other.Key} }, "is not in spec.hostKeys"},
		{"no key is pinned: nothing is trusted on first use", func(l *ssh.Login) { l.Host.HostKeys = nil }, "hostKeys is empty"},
		{"an invalid public key", func(l *ssh.Login) { l.Host.HostKeys = []string{"nonsense"} }, "hostKeys[0] is not a public key"},
		{"an invalid private key", func(l *ssh.Login) { l.Key = []byte("secret stuff") }, "has no valid key under ssh-privatekey"},
		{"a private key that the server rejects", func(l *ssh.Login) { l.Key = other.PrivateKey }, "logging in as root: the server rejects the key"},
		{"a Host that does not listen", func(l *ssh.Login) { l.Host.Port = closed(t) }, "connecting"},
		{"a Host that accepts connections and is unresponsive", func(l *ssh.Login) { l.Host.Port = silent.port }, "context canceled"},
		{"a server that refuses and says why", func(l *ssh.Login) {
			rude := newWorld(t)
			rude.Refusal = "secret stuff"
			spec := rude.Spec()
			*l = ssh.Login{Host: &spec, Key: rude.PrivateKey}
		}, "opening a session: the server closed the connection"},
		{"a script that fails", func(*ssh.Login) {}, "it ended with status 7"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t)
			tc.change(&w.login)
			ctx := t.Context()
			if w.login.Host.Port == silent.port {
				ctx = silent.given(t)
			}
			_, err := w.login.Run(ctx, "echo secret stuff; echo secret stuff >&2; exit 7", nil, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("the error is %v, want one with %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "secret") && !strings.Contains(err.Error(), "the Secret of") {
				t.Errorf("the error repeats what the Host said: %v", err)
			}
		})
	}
}

func TestAnswersAreBounded(t *testing.T) {
	w := newWorld(t)
	if got := w.run(t, "head -c 1000000 /dev/zero | tr '\\0' x", nil, ""); len(got) != 1<<14 {
		t.Errorf("%d characters of an answer are kept", len(got))
	}
}

// Some users have shells that say hello, also to programs.
func TestGreeting(t *testing.T) {
	w := newWorld(t)
	if got := w.run(t, "echo welcome; echo; echo ended 0", nil, ""); got != "ended 0" {
		t.Errorf("the answer is %q", got)
	}
}

func TestSudo(t *testing.T) {
	w := newWorld(t)
	w.login.Host.Sudo = true
	if got := w.run(t, "echo fine", nil, ""); got != "fine" || w.Commands("sudo -n sh -c") != 1 {
		t.Errorf("the answer is %q, and sudo was used %d times", got, w.Commands("sudo -n sh -c"))
	}
}

// silent accepts a connection and never says anything.
type silent struct {
	port     int32
	accepted chan struct{}
}

func newSilent(t *testing.T) silent {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := silent{int32(l.Addr().(*net.TCPAddr).Port), make(chan struct{})}
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, _ = conn.Read(make([]byte, 1)) // the client is connected, and waits for an answer
		}
		close(s.accepted)
		if err == nil {
			<-t.Context().Done()
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-s.accepted })
	return s
}

// given is a context that ends once the connection is there.
func (s silent) given(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-s.accepted
		cancel()
	}()
	return ctx
}

func closed(t *testing.T) int32 {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port)
}
