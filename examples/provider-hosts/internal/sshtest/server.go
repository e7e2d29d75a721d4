// Package sshtest is an SSH server for tests. It runs what it is told, as the user of the test, in a folder that stands for the root
// of a Host: the paths that the provider's scripts use are replaced by paths below it.
package sshtest

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
)

// State is the folder in which the scripts keep their state, below a server's Root.
const State = "var/lib/cluster-api-hosts"

// Server is a Host.
type Server struct {
	// Root stands for the root of the Host's file system. Programs in its folder bin come first.
	Root string
	// PrivateKey is what a client logs in with, and Key the server's public key.
	PrivateKey []byte
	Key        string
	// Refusal is why the server opens no sessions. Empty: it does.
	Refusal string

	address  *net.TCPAddr
	listener net.Listener
	config   *ssh.ServerConfig

	mu       sync.Mutex
	commands []string
	running  sync.WaitGroup
	stopped  bool
}

// Start starts a server, until the test ends. What it started then is killed.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{Root: t.TempDir()}
	private, public := key(t)
	s.PrivateKey = private
	_, hostKey := signer(t)
	s.Key = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(hostKey.PublicKey())))
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, given ssh.PublicKey) (*ssh.Permissions, error) {
		if string(given.Marshal()) != string(public.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	s.config.AddHostKey(hostKey)
	for _, folder := range []string{State, "bin", "run", "etc/cloud/cloud.cfg.d", "var/lib/cloud"} {
		if err := os.MkdirAll(filepath.Join(s.Root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.serve(t)
	t.Cleanup(func() { s.stop(t) })
	return s
}

// Spec reaches the server.
func (s *Server) Spec() hostsv1.HostSpec {
	return hostsv1.HostSpec{
		Address: s.address.IP.String(), Port: int32(s.address.Port), User: "root",
		HostKeys: []string{s.Key}, SSHKeySecret: "ssh-key",
	}
}

// Commands returns how often a command was run, by a word in it.
func (s *Server) Commands(word string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, command := range s.commands {
		if strings.Contains(command, word) {
			n++
		}
	}
	return n
}

// Read reads a file below Root; empty if there is none.
func (s *Server) Read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.Root, path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}

// Program puts a shell script into the Host's PATH, before all others.
func (s *Server) Program(t testing.TB, name, script string) {
	t.Helper()
	//nolint:gosec // it is a program
	if err := os.WriteFile(filepath.Join(s.Root, "bin", name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
}

// Gate makes a named pipe at $DIRECTORY/../gate: a command that reads it waits until open is called.
func (s *Server) Gate(t testing.TB) (open func()) {
	t.Helper()
	path := filepath.Join(s.Root, "var/lib/gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
}

// Unplug stops the server from accepting connections.
func (s *Server) Unplug() { _ = s.listener.Close() }

func (s *Server) serve(t testing.TB) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.listener = listener
	s.address = listener.Addr().(*net.TCPAddr)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.connection(conn)
		}
	}()
}

func (s *Server) connection(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // a test's
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if s.Refusal != "" {
			_ = offered.Reject(ssh.Prohibited, s.Refusal)
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests)
	}
}

func (s *Server) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close() //nolint:errcheck // a test's
	for request := range requests {
		var exec struct{ Command string }
		if request.Type != "exec" || ssh.Unmarshal(request.Payload, &exec) != nil {
			_ = request.Reply(false, nil)
			continue
		}
		_ = request.Reply(true, nil)
		status := s.run(exec.Command, channel)
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		return
	}
}

// accept counts a command, unless the server has stopped.
func (s *Server) accept(command string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.commands = append(s.commands, command)
	s.running.Add(1)
	return true
}

// run runs a command below Root. Sudo is left out.
func (s *Server) run(command string, channel ssh.Channel) uint32 {
	if !s.accept(command) {
		return 127
	}
	defer s.running.Done()
	command = strings.TrimPrefix(command, "sudo -n ")
	for _, folder := range []string{"/var/lib/", "/etc/", "/run/", "/proc/"} {
		command = strings.ReplaceAll(command, folder, s.Root+folder)
	}
	cmd := exec.CommandContext(context.Background(), "sh", "-c", command)
	cmd.Env = []string{"PATH=" + filepath.Join(s.Root, "bin") + ":" + os.Getenv("PATH")}
	cmd.Stdout = channel
	stdin, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return 127
	}
	go func() {
		_, _ = io.Copy(stdin, channel)
		_ = stdin.Close()
	}()
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) {
		return uint32(exit.ExitCode())
	}
	return 0
}

// stop waits for the commands that were sent, and kills what they started.
func (s *Server) stop(t testing.TB) {
	_ = s.listener.Close()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.running.Wait()
	for _, job := range []string{"bootstrap", "reset", "etcd"} {
		path := filepath.Join(s.Root, State, job)
		var pid int
		if n, _ := fmt.Sscan(s.Read(t, State+"/"+job+".pid"), &pid); n == 1 && s.Read(t, State+"/"+job+".status") == "" {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
		if lock, err := os.Open(path + ".running"); err == nil {
			_ = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX) // until all processes of the job are gone
			_ = lock.Close()
		}
	}
}

func key(t testing.TB) (private []byte, public ssh.PublicKey) {
	raw, s := signer(t)
	block, err := ssh.MarshalPrivateKey(raw, "")
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block), s.PublicKey()
}

func signer(t testing.TB) (ed25519.PrivateKey, ssh.Signer) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return private, s
}
