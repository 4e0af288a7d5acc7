//! Loopback ports that stay ours while no server listens on them.
//!
//! A port that is merely free now can be taken before the server binds it, or while the server is
//! stopped: even a client that tries to reach the stopped server may get that very port as its own.
//! On Linux, a bound socket that does not listen keeps out everybody except programs that request
//! address reuse on this exact port, as Go's listeners do.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

use crate::Error;

/// A loopback port, reserved until this is dropped.
pub(crate) struct Port {
    number: u16,
    _reservation: Option<TcpSocket>,
}

impl Port {
    pub(crate) fn reserve() -> Result<Self, Error> {
        let reserve = || {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
            Ok((socket.local_addr()?.port(), socket))
        };
        let (number, socket) = reserve().map_err(Error::io("get a free loopback port"))?;
        // Other systems refuse to let the server bind the port that we have bound.
        Ok(Self { number, _reservation: cfg!(target_os = "linux").then_some(socket) })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}
