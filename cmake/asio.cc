// Boost.Asio's own functions, compiled here once instead of in every file that
// includes their headers.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
