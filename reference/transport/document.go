package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// A peer names addresses of documents, such as the metadata of its authorization server,
// and may name any: what may be fetched for it is decided here, and nowhere else.

// nearness is how near an address is to this machine.
type nearness int

// From the nearest to the farthest. At link-local addresses, clouds have the credentials of
// the machine.
const (
	linkLocal nearness = iota
	loopback
	private
	public
)

func (n nearness) String() string {
	return [...]string{"a link-local address", "an address of this machine", "an address of a private network",
		"a public address"}[n]
}

// netip does not know these networks: "this network" leads to this machine, operators use shared addresses (RFC 6598)
// in private, and the last ones hold an IPv4 address (RFC 6052).
var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	shared      = netip.MustParsePrefix("100.64.0.0/10")
	translated  = netip.MustParsePrefix("64:ff9b::/96")
)

func nearnessOf(ip netip.Addr) nearness {
	ip = ip.Unmap().WithZone("")
	if translated.Contains(ip) {
		all := ip.As16()
		ip = netip.AddrFrom4([4]byte(all[12:]))
	}
	switch {
	case ip.IsLinkLocalUnicast(), ip.IsMulticast():
		return linkLocal
	case ip.IsLoopback(), ip.IsUnspecified(), thisNetwork.Contains(ip):
		return loopback
	case ip.IsPrivate(), shared.Contains(ip):
		return private
	}
	return public
}

// literal returns the address that a host is, or stands for on every machine.
func literal(host string) (netip.Addr, bool) {
	if strings.HasSuffix("."+strings.ToLower(strings.TrimSuffix(host, ".")), ".localhost") {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return ip, err == nil
}

// Document returns the endpoint of a document that the peer at e has named. It has to be one
// of http or https; at the peer's own host it may be anywhere, and else at no address that is
// nearer to this machine than the peer's own is, and at no link-local one: this is decided again when
// the connection is made, for the address that a name then stands for. Nothing that the user
// gave for the peer goes to another origin.
func (e Endpoint) Document(rawURL string) (Endpoint, error) {
	there, err := url.Parse(rawURL)
	if err != nil {
		return e, errors.New("not a URL")
	}
	if s := strings.ToLower(there.Scheme); s != "http" && s != "https" || there.Hostname() == "" {
		return e, fmt.Errorf("%s is not the URL of a document: mcpconform fetches http:// and https:// for a peer",
			wire.Quote(rawURL, 120))
	}
	there.User = nil
	mine, socket, err := parseURL(e.URL)
	if err != nil {
		return e, err
	}
	near := e.Socket
	if near == "" {
		near = socket
	}
	e.Token = nil // it is for the protocol alone
	if !strings.EqualFold(mine.Host, there.Host) || !strings.EqualFold(mine.Scheme, there.Scheme) {
		e.Header, e.Socket = nil, ""
		if e.TLS != nil {
			// A client certificate identifies the user as well.
			e.TLS = e.TLS.Clone()
			e.TLS.Certificates = []tls.Certificate{}
		}
	} else {
		e.Socket = near
	}
	e.URL = there.String()
	if e.Socket == "" {
		e.lead = &lead{peer: mine.Hostname(), to: there.Hostname(), dial: e.Dial != nil}
		if near != "" {
			e.lead.peer = "localhost" // behind a socket of this machine
		}
		if ip, ok := literal(there.Hostname()); ok {
			if err := e.lead.admit(context.Background(), ip); err != nil {
				return e, err
			}
		}
	}
	return e, nil
}

// lead is where a peer leads.
type lead struct {
	peer, to string // hosts
	dial     bool   // no names of the machine's network
}

// NearError reports an address to which a peer must not lead.
type NearError struct {
	Host string
	at   nearness
}

func (e *NearError) Error() string {
	return fmt.Sprintf("%s is %s, and the peer that names it is not there: mcpconform fetches for a peer only "+
		"what is at its own host, or no nearer to this machine than that",
		wire.Quote(e.Host, 80), e.at)
}

// admit reports an address to which the peer must not lead.
func (l *lead) admit(ctx context.Context, ip netip.Addr) error {
	at := nearnessOf(ip)
	if at == public || strings.EqualFold(l.peer, l.to) || at != linkLocal && at >= l.nearest(ctx) {
		return nil
	}
	return &NearError{l.to, at}
}

// nearest returns how near the peer is; a name may stand for several addresses, the nearest of
// which counts.
func (l *lead) nearest(ctx context.Context) nearness {
	if ip, ok := literal(l.peer); ok {
		return nearnessOf(ip)
	}
	n := public
	if l.dial {
		return n
	}
	all, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", l.peer) // one that has no address is not near
	for _, ip := range all {
		n = min(n, nearnessOf(ip))
	}
	return n
}

// control is for a [net.Dialer].
func (l *lead) control(ctx context.Context, _, addr string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	return l.admit(ctx, at.Addr())
}
