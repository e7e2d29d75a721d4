package world

import (
	"context"
	"io"
	"net"
	"strconv"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/script"
)

// Admission is the verb of webhook calls, which faults can select.
const Admission = "admit"

// service forwards a port to the webhook server of the first available replica, as a Service does.
type service struct {
	calls    script.Kind
	scripts  *script.Set
	replicas []*manager
}

// open starts listening.
func (f *service) open(ctx context.Context) (port int, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go f.connect(ctx, conn)
		}
	}()
	address, _ := listener.Addr().(*net.TCPAddr)
	return address.Port, nil
}

// connect forwards a connection until it ends or a partition begins. During a partition, it closes new connections or does not
// respond.
func (f *service) connect(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	ongoing := f.scripts.Ongoing()
	if how, remaining := ongoing.Blocked(f.calls, ""); how != "" {
		if how != script.Unreachable {
			select {
			case <-ctx.Done():
			case <-ongoing.Changed():
			case <-time.After(remaining):
			}
		}
		return
	}
	go func() {
		for ctx.Err() == nil {
			changed := ongoing.Changed()
			if how, _ := ongoing.Blocked(f.calls, ""); how != "" {
				cancel()
			}
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}()
	for _, m := range f.replicas {
		if !m.serves() {
			continue
		}
		to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(m.WebhookPort))) //nolint:noctx // Loopback connects immediately.
		if err != nil {
			continue
		}
		defer func() { _ = to.Close() }()
		go func() {
			_, _ = io.Copy(to, conn) // Either side may close first.
			_ = to.Close()
		}()
		_, _ = io.Copy(conn, to)
		return
	}
}
