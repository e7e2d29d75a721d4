// Package ssh runs the provider's script on Hosts. All that Hosts say but the script's answer is dropped, since it may contain secrets.
package ssh

import (
	"bytes"
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
)

const (
	// connectTimeout limits how long a Host may take to accept a connection.
	connectTimeout = 10 * time.Second
	// maxOutput limits how much of a Host's output is read. The answer is short, apart from the state of etcd; shells may greet before.
	maxOutput = 1 << 14
)

var (
	// Script is what Run runs. The file says which variables it needs and what it answers.
	//go:embed host.sh
	Script string
	// CloudInit is the bootstrap command if a HostMachine names none.
	//go:embed cloud-init.sh
	CloudInit string
	// KubeadmReset is the reset command if a HostMachine names none.
	//go:embed kubeadm-reset.sh
	KubeadmReset string
)

// Keys parses the public keys of an SSH server. At least one is required.
func Keys(lines []string) ([]ssh.PublicKey, error) {
	var keys []ssh.PublicKey
	for i, line := range lines {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("hostKeys[%d] is not a public key such as \"ssh-ed25519 AAAA...\": %w", i, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("hostKeys is empty: it must have a public key of the Host's SSH server")
	}
	return keys, nil
}

// Login is how to log in to a Host.
type Login struct {
	Host *hostsv1.HostSpec
	// Key is the user's private key.
	Key []byte
}

// Run runs a script as root with variables and standard input, and returns the last line of its output. It ends when ctx does.
func (l Login) Run(ctx context.Context, script string, variables map[string]string, stdin []byte) (string, error) {
	at := net.JoinHostPort(l.Host.Address, strconv.Itoa(int(l.Host.Port)))
	config, err := l.config()
	if err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", at)
	if err != nil {
		return "", fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close() //nolint:errcheck // there is an answer by then, or an error
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	transport, channels, requests, err := ssh.NewClientConn(conn, at, config)
	if err != nil {
		return "", fmt.Errorf("logging in as %s: %w", l.Host.User, local(ctx, err))
	}
	session, err := ssh.NewClient(transport, channels, requests).NewSession()
	if err != nil {
		return "", fmt.Errorf("opening a session: %w", local(ctx, err))
	}
	for name, value := range variables {
		script = name + "=" + quote(value) + "\n" + script
	}
	command := "sh -c " + quote(script)
	if l.Host.Sudo {
		command = "sudo -n " + command
	}
	session.Stdin = bytes.NewReader(stdin)
	stdout, piped := session.StdoutPipe()
	if err := errors.Join(piped, session.Start(command)); err != nil {
		return "", fmt.Errorf("starting the script: %w", local(ctx, err))
	}
	output, read := io.ReadAll(io.LimitReader(stdout, maxOutput))
	if err := errors.Join(read, session.Wait()); err != nil {
		return "", fmt.Errorf("running the script: %w", local(ctx, err))
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return lines[len(lines)-1], nil
}

// local returns an error without text that the server sent: it could repeat secrets, or be made up to mislead.
func local(ctx context.Context, err error) error {
	var (
		unknown keyError
		exit    *ssh.ExitError
		network *net.OpError
	)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &unknown):
		return unknown
	case errors.As(err, &exit):
		return fmt.Errorf("it ended with status %d: the user must be root or have sudo, and there must be flock, setsid and sha256sum",
			exit.ExitStatus())
	case errors.As(err, &network):
		return network
	case strings.Contains(err.Error(), "unable to authenticate"):
		return errors.New("the server rejects the key of the user")
	}
	return errors.New("the server closed the connection, or does not speak SSH with a key of spec.hostKeys")
}

// keyError is the fingerprint of a server's key that is not pinned.
type keyError string

// Error implements error.
func (w keyError) Error() string {
	return fmt.Sprintf("the server's key %s is not in spec.hostKeys", string(w))
}

// config returns the configuration to log in with, to a server with one of the pinned keys only.
func (l Login) config() (*ssh.ClientConfig, error) {
	signer, err := ssh.ParsePrivateKey(l.Key)
	if err != nil {
		return nil, errors.New("the Secret of the SSH key has no valid key under ssh-privatekey: it must be a private key without passphrase")
	}
	pinned, err := Keys(l.Host.HostKeys)
	if err != nil {
		return nil, err
	}
	var algorithms []string // so that a server with several keys presents one that is pinned
	for _, key := range pinned {
		if key.Type() == ssh.KeyAlgoRSA {
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			algorithms = append(algorithms, key.Type())
		}
	}
	verify := func(_ string, _ net.Addr, key ssh.PublicKey) error {
		if slices.ContainsFunc(pinned, func(p ssh.PublicKey) bool { return bytes.Equal(p.Marshal(), key.Marshal()) }) {
			return nil
		}
		return keyError(ssh.FingerprintSHA256(key))
	}
	auth := []ssh.AuthMethod{ssh.PublicKeys(signer)}
	return &ssh.ClientConfig{User: l.Host.User, Auth: auth, HostKeyAlgorithms: algorithms, HostKeyCallback: verify}, nil
}

// quote quotes s as one word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
