// Package ssh runs the provider's scripts on Hosts. A script answers with a word or two. All other output of Hosts is dropped, since it
// may contain secrets.
package ssh

import (
	"bytes"
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
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
	// maxAnswer limits what is read of an answer. The longest has 12 bytes.
	maxAnswer = 1 << 10
)

// Scripts for Run; their files say which variables they need and what they answer. Start answers what State does.
var (
	//go:embed state.sh
	State string
	//go:embed start.sh
	Start string
	//go:embed reset.sh
	Reset string
)

// Commands that Start and Reset are given when a HostMachine names no others.
var (
	//go:embed cloud-init.sh
	CloudInit string
	//go:embed kubeadm-reset.sh
	KubeadmReset string
)

// Login is how to log in to a Host.
type Login struct {
	Host *hostsv1.HostSpec
	// Key is the user's private key.
	Key []byte
}

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

// Run runs a script as root with variables and standard input, and returns the words of its answer. It ends when ctx does.
func (l Login) Run(ctx context.Context, script string, variables map[string]string, stdin []byte) ([]string, error) {
	at := net.JoinHostPort(l.Host.Address, strconv.Itoa(int(l.Host.Port)))
	config, err := l.config()
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close() //nolint:errcheck // there is an answer by then, or an error
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	transport, channels, requests, err := ssh.NewClientConn(conn, at, config)
	if err != nil {
		return nil, fmt.Errorf("logging in as %s: %w", l.Host.User, errors.Join(err, ctx.Err()))
	}
	session, err := ssh.NewClient(transport, channels, requests).NewSession()
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", errors.Join(err, ctx.Err()))
	}
	var answer limited
	session.Stdin, session.Stdout = bytes.NewReader(stdin), &answer
	command := "sh -c " + quote(assignments(variables)+script)
	if l.Host.Sudo {
		command = "sudo -n " + command
	}
	if err := session.Run(command); err != nil {
		if exit := (*ssh.ExitError)(nil); errors.As(err, &exit) {
			return nil, fmt.Errorf("a script ended with status %d: user %s must be able to run commands as root, and there must be flock, setsid and sha256sum",
				exit.ExitStatus(), l.Host.User)
		}
		return nil, fmt.Errorf("running a script: %w", errors.Join(err, ctx.Err()))
	}
	return strings.Fields(string(answer.kept)), nil
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
	return &ssh.ClientConfig{
		User: l.Host.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyAlgorithms: algorithms(pinned), HostKeyCallback: oneOf(pinned),
	}, nil
}

// oneOf rejects servers with a key that is not pinned.
func oneOf(pinned []ssh.PublicKey) ssh.HostKeyCallback {
	return func(_ string, _ net.Addr, key ssh.PublicKey) error {
		if slices.ContainsFunc(pinned, func(p ssh.PublicKey) bool { return bytes.Equal(p.Marshal(), key.Marshal()) }) {
			return nil
		}
		return fmt.Errorf("the server's key %s is not in spec.hostKeys", ssh.FingerprintSHA256(key))
	}
}

// algorithms lists the types of the pinned keys, so that a server with several keys presents one of these.
func algorithms(pinned []ssh.PublicKey) []string {
	var names []string
	for _, key := range pinned {
		if key.Type() == ssh.KeyAlgoRSA {
			names = append(names, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		names = append(names, key.Type())
	}
	return names
}

func assignments(variables map[string]string) string {
	var b strings.Builder
	for name, value := range variables {
		fmt.Fprintf(&b, "%s=%s\n", name, quote(value))
	}
	return b.String()
}

// quote quotes s as one word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// limited keeps the first maxAnswer bytes that are written to it.
type limited struct{ kept []byte }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[:min(len(p), maxAnswer-len(l.kept))]...)
	return len(p), nil
}
