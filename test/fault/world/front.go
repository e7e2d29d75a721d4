package world

import (
	"context"
	"io"
	"net"
	"strconv"
)

// balance opens a port that leads to the webhook server of the first replica that can answer, as a Service does.
func balance(ctx context.Context, replicas []*manager) (port int, err error) {
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
			go connect(conn, replicas)
		}
	}()
	address, _ := listener.Addr().(*net.TCPAddr)
	return address.Port, nil
}

func connect(conn net.Conn, replicas []*manager) {
	defer func() { _ = conn.Close() }()
	for _, m := range replicas {
		if !m.serves() {
			continue
		}
		to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(m.WebhookPort)))
		if err != nil {
			continue
		}
		defer func() { _ = to.Close() }()
		go func() {
			_, _ = io.Copy(to, conn) // Either side may end first.
			_ = to.Close()
		}()
		_, _ = io.Copy(conn, to)
		return
	}
}
